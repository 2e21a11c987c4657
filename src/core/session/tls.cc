// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "core/session/tls.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/registers.h"
#include "base/text.h"

namespace sealane {
namespace {

constexpr const char* kCipherSuite = "TLS_AES_256_GCM_SHA384";
constexpr unsigned char kCipherSuiteId[] = {0x13, 0x02};
constexpr unsigned char kSessionContext[] = "sealane";
// Who somebody is, is said inside: the key proves membership and no more.
constexpr std::string_view kPskIdentity = "sealane-2";

std::string reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "no reason given" : text;
}

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

// OpenSSL's own would ask the terminal, or the program's input, and wait for an answer.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

X509* next_certificate(BIO* pem) {
  bool asked = false;
  return PEM_read_bio_X509(pem, nullptr, no_passphrase, &asked);
}

Bio bio_of(std::string_view pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
}

Status use_certificates(SSL_CTX* context, const Certificates& files) {
  const Bio own = bio_of(files.certificate);
  const Certificate certificate(next_certificate(own.get()), X509_free);
  if (certificate == nullptr || SSL_CTX_use_certificate(context, certificate.get()) != 1) {
    return usage_error(concat("the certificate cannot be used: ", reason()));
  }
  while (X509* extra = next_certificate(own.get())) {
    SSL_CTX_add0_chain_cert(context, extra);
  }
  const Bio authorities = bio_of(files.authorities);
  int added = 0;
  while (X509* authority = next_certificate(authorities.get())) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority);
    X509_free(authority);
    ++added;
  }
  if (added == 0) return usage_error("the file of authorities has no certificate");
  X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(context), files.unix_seconds);
  return {};
}

// Of the connection alone, which can let go of it: its context would keep it as long as it lives.
Status use_private_key(SSL* ssl, const SecretPem& pem) {
  const Bio bio = bio_of(pem.view());
  bool asked = false;
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &asked), EVP_PKEY_free);
  if (asked) {
    return usage_error(
        "the private key is encrypted, and a rank asks nobody for a passphrase: decrypt it "
        "(openssl "
        "pkey -in FILE -out FILE), with mode 0600");
  }
  if (key == nullptr || SSL_use_PrivateKey(ssl, key.get()) != 1 ||
      SSL_check_private_key(ssl) != 1) {
    return usage_error(concat("the private key does not fit the certificate: ", reason()));
  }
  return {};
}

// Where a vector has to move, it would leave what it holds in the memory it gives back.
void append_secret(std::vector<uint8_t>& to, Bytes more) {
  if (to.capacity() - to.size() < more.size()) {
    std::vector<uint8_t> larger;
    larger.reserve(2 * (to.size() + more.size()));
    larger.assign(to.begin(), to.end());
    wipe(to);
    to.swap(larger);
  }
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

Result<std::unique_ptr<TlsEnd>> TlsEnd::create(Role role, const Credentials& credentials) {
  ERR_clear_error();
  std::unique_ptr<TlsEnd> end(new TlsEnd);
  end->context_.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* context = end->context_.get();
  SEALANE_CHECK(context != nullptr, "OpenSSL has no TLS");
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, kCipherSuite);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // An accepted key counts as a resumed session, which must belong to some context.
  SSL_CTX_set_session_id_context(context, kSessionContext, sizeof kSessionContext - 1);
  SSL_CTX_set_options(context,
                      SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CLEANSE_PLAINTEXT);
  SSL_CTX_set_keylog_callback(context, on_secret);
  // With a pre-shared key no certificate is trusted, so a server without the key finds no way in.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);

  end->preshared_ = !std::holds_alternative<Certificates>(credentials);
  end->pairwise_ = std::holds_alternative<PairKeys>(credentials);
  if (!end->preshared_) {
    Status ready = use_certificates(context, std::get<Certificates>(credentials));
    if (!ready) return ready.error();
  } else if (role == Role::client) {
    SSL_CTX_set_psk_use_session_callback(context, on_use_psk);
  } else {
    SSL_CTX_set_psk_find_session_callback(context, on_find_psk);
  }

  end->ssl_.reset(SSL_new(context));
  SSL* ssl = end->ssl_.get();
  SEALANE_CHECK(ssl != nullptr, "out of memory");
  if (!end->preshared_) {
    Status ready = use_private_key(ssl, std::get<Certificates>(credentials).private_key);
    if (!ready) return ready.error();
  }
  SSL_set_app_data(ssl, end.get());
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  role == Role::server ? SSL_set_accept_state(ssl) : SSL_set_connect_state(ssl);
  return end;
}

// Also in a child of fork(), where OpenSSL's memory is a copy and ours is empty: the places are
// known since the handshake.
TlsEnd::~TlsEnd() {
  find_secrets();
  for (const Place& place : places_) {
    OPENSSL_cleanse(reinterpret_cast<uint8_t*>(ssl_.get()) + place.at, sizeof Derived::bytes);
  }
  if (!here_.alive()) leave();
}

// To a child, where a thread that is not there may have had any lock of OpenSSL's: what frees an
// object would wait for it. A session that begins anew takes none, and drops the schedules of its
// keys. The objects stay; where the handshake was done nothing else in them is secret.
void TlsEnd::leave() {
  if (ssl_ != nullptr) {
    SSL_set_connect_state(ssl_.get());
    OPENSSL_cleanse(ssl_.get(), bytes_of_object());
  }
  static_cast<void>(ssl_.release());
  static_cast<void>(context_.release());
}

// None where the program gave OpenSSL another allocator: nobody knows where its object ends.
size_t TlsEnd::bytes_of_object() const {
  CRYPTO_malloc_fn allocates = nullptr;
  CRYPTO_get_mem_functions(&allocates, nullptr, nullptr);
  return allocates == CRYPTO_malloc ? malloc_usable_size(ssl_.get()) : 0;
}

// "LABEL RANDOM SECRET", the last two in hexadecimal digits.
void TlsEnd::on_secret(const SSL* ssl, const char* line) {
  auto* const end = static_cast<TlsEnd*>(SSL_get_app_data(ssl));
  const std::string_view text(line);
  const std::string_view digits = text.substr(text.rfind(' ') + 1);
  Secret<Derived> derived;
  if (digits.size() != 2 * derived->bytes.size()) return;
  const auto value = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  for (size_t i = 0; i < derived->bytes.size(); ++i) {
    derived->bytes[i] = static_cast<uint8_t>(value(digits[2 * i]) << 4 | value(digits[2 * i + 1]));
  }
  derived->exporter = text.starts_with("EXPORTER_SECRET ");
  end->derived_.push_back(std::move(derived));
  clear_vector_registers();
}

void TlsEnd::find_secrets() {
  const size_t bytes = bytes_of_object();
  const auto* const object = reinterpret_cast<const uint8_t*>(ssl_.get());
  for (const Secret<Derived>& derived : derived_) {
    if (!derived.alive()) continue;
    for (size_t at = 0; at + derived->bytes.size() <= bytes; ++at) {
      if (std::memcmp(object + at, derived->bytes.data(), derived->bytes.size()) != 0) continue;
      places_.push_back({at, derived->exporter});
    }
  }
  derived_.clear();
  clear_vector_registers();
}

void TlsEnd::forget_exporter() {
  for (const Place& place : places_) {
    if (!place.exporter) continue;
    OPENSSL_cleanse(reinterpret_cast<uint8_t*>(ssl_.get()) + place.at, sizeof Derived::bytes);
  }
}

SSL_SESSION* TlsEnd::psk_session() const {
  SEALANE_CHECK(psk_, "a handshake before the session's key is known");
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl_.get(), kCipherSuiteId);
  const bool made =
      session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, psk_->secret().data(), Key::kBytes) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set1_id_context(session, kSessionContext, sizeof kSessionContext - 1) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  SEALANE_CHECK(made, "OpenSSL refused a pre-shared key");
  return session;
}

int TlsEnd::on_use_psk(SSL* ssl, const EVP_MD* digest, const unsigned char** id, size_t* id_length,
                       SSL_SESSION** session) {
  const auto* end = static_cast<TlsEnd*>(SSL_get_app_data(ssl));
  *session = end->psk_session();
  if (digest != nullptr &&
      digest != SSL_CIPHER_get_handshake_digest(SSL_SESSION_get0_cipher(*session))) {
    SSL_SESSION_free(*session);
    *session = nullptr;  // the server asked for a hash the key is not for: continue without it
    return 1;
  }
  *id = reinterpret_cast<const unsigned char*>(kPskIdentity.data());
  *id_length = kPskIdentity.size();
  return 1;
}

int TlsEnd::on_find_psk(SSL* ssl, const unsigned char* id, size_t id_length,
                        SSL_SESSION** session) {
  const auto* end = static_cast<TlsEnd*>(SSL_get_app_data(ssl));
  *session = nullptr;
  const std::string_view claim(reinterpret_cast<const char*>(id), id_length);
  if (claim == kPskIdentity) *session = end->psk_session();
  return 1;
}

void TlsEnd::handle_received(Bytes bytes) {
  while (!bytes.empty()) {
    const int count = static_cast<int>(std::min<size_t>(bytes.size(), 1_MiB));
    const int written = BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), count);
    SEALANE_CHECK(written == count, "out of memory");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

std::vector<uint8_t> TlsEnd::poll_transmit() {
  BIO* bio = SSL_get_wbio(ssl_.get());
  std::vector<uint8_t> out(BIO_ctrl_pending(bio));
  if (!out.empty()) BIO_read(bio, out.data(), static_cast<int>(out.size()));
  return out;
}

Result<bool> TlsEnd::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    // OpenSSL counts an accepted external key as a resumption.
    if (preshared_ && SSL_session_reused(ssl_.get()) != 1) {
      return crypto_error("the handshake did not use the pre-shared key");
    }
    forget_keys();
    find_secrets();
    established_ = true;
    return true;
  }
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
  return explain();
}

// OpenSSL would keep it, or the private keys, for as long as the connection lasts.
void TlsEnd::forget_keys() {
  EVP_PKEY* ephemeral = nullptr;
  if (SSL_get_tmp_key(ssl_.get(), &ephemeral) == 1) {
    EVP_PKEY_set_type(ephemeral, EVP_PKEY_X25519);  // of nothing, instead
    EVP_PKEY_free(ephemeral);
  }
  if (!preshared_) return SSL_certs_clear(ssl_.get());
  psk_.reset();
  const std::array<uint8_t, Key::kBytes> nothing{};
  const int done =
      SSL_SESSION_set1_master_key(SSL_get_session(ssl_.get()), nothing.data(), nothing.size());
  SEALANE_CHECK(done == 1, "OpenSSL kept a pre-shared key");
}

Error TlsEnd::explain() const {
  if (!established_) return explain_handshake();
  // Alerts are encrypted by now, so this one is the peer's: it does not accept this side.
  const bool alert = ERR_GET_REASON(ERR_peek_error()) >= SSL_AD_REASON_OFFSET;
  if (alert) return crypto_error(concat("the peer refused the session: ", reason()));
  return crypto_error(concat("the session was tampered with: ", reason()));
}

Error TlsEnd::explain_handshake() const {
  const unsigned long code = ERR_peek_error();
  const int why = ERR_GET_REASON(code);
  const bool wrong_key =
      preshared_ &&
      (why == SSL_R_BINDER_DOES_NOT_VERIFY || why == SSL_R_BAD_PSK ||
       why == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER || why == SSL_R_TLSV1_ALERT_DECRYPT_ERROR);
  if (wrong_key) {
    return crypto_error(pairwise_
                            ? "the peer does not have the secret of the rank that it claims to be"
                            : "the pre-shared keys differ: give every rank the same key file");
  }
  if (preshared_ && why == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE) {
    return crypto_error(
        "handshake refused by the peer: it has certificates or another kind of key than this "
        "rank");
  }
  const long verified = SSL_get_verify_result(ssl_.get());
  if (!preshared_ && verified != X509_V_OK) {
    return crypto_error(concat("the peer's certificate is not accepted: ",
                               X509_verify_cert_error_string(verified)));
  }
  return crypto_error(concat("TLS handshake failed: ", reason()));
}

Status TlsEnd::write(Bytes plaintext) {
  ERR_clear_error();
  const int written = SSL_write(ssl_.get(), plaintext.data(), static_cast<int>(plaintext.size()));
  if (written == static_cast<int>(plaintext.size())) return {};
  return peer_error(concat("the session is broken: ", reason()));
}

Status TlsEnd::read(std::vector<uint8_t>& plaintext) {
  ERR_clear_error();
  std::array<uint8_t, 16_KiB> piece;
  while (true) {
    const int count = SSL_read(ssl_.get(), piece.data(), piece.size());
    if (count > 0) {
      append_secret(plaintext, Bytes(piece).first(static_cast<size_t>(count)));
      continue;
    }
    wipe(piece);
    switch (SSL_get_error(ssl_.get(), count)) {
      case SSL_ERROR_WANT_READ:
        return {};
      case SSL_ERROR_ZERO_RETURN:
        return peer_error("the peer closed the session");
      default:
        return explain();
    }
  }
}

void TlsEnd::export_secret(std::string_view label, Bytes context, MutableBytes out) const {
  const int done = SSL_export_keying_material(ssl_.get(), out.data(), out.size(), label.data(),
                                              label.size(), context.data(), context.size(), 1);
  SEALANE_CHECK(done == 1, "TLS exporter failed");
}

bool TlsEnd::peer_has_uri(const std::string& uri) const {
  const Certificate certificate(SSL_get1_peer_certificate(ssl_.get()), X509_free);
  if (certificate == nullptr) return false;
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr));
  bool found = false;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* text = name->d.uniformResourceIdentifier;
    const std::string_view value(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                                 static_cast<size_t>(ASN1_STRING_length(text)));
    found = found || value == uri;
  }
  GENERAL_NAMES_free(names);
  return found;
}

}  // namespace sealane
