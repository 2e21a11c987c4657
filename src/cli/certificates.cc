// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/certificates.h"

#include <fmt/core.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

namespace sealane::cli {
namespace {

constexpr long kVersion3 = 2;
constexpr int kSerialBits = 127;

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* one) const {
    Free(one);
  }
};
using KeyPointer = std::unique_ptr<EVP_PKEY, Freed<&EVP_PKEY_free>>;
using CertificatePointer = std::unique_ptr<X509, Freed<&X509_free>>;
using BioPointer = std::unique_ptr<BIO, Freed<&BIO_free_all>>;
using NumberPointer = std::unique_ptr<BIGNUM, Freed<&BN_clear_free>>;
using ExtensionPointer = std::unique_ptr<X509_EXTENSION, Freed<&X509_EXTENSION_free>>;

struct Issued {
  KeyPointer key;
  CertificatePointer certificate;
};

bool add_extension(X509& to, X509& issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &to, nullptr, nullptr, 0);
  const ExtensionPointer made(X509V3_EXT_nconf_nid(nullptr, &context, kind, value.c_str()));
  return made != nullptr && X509_add_ext(&to, made.get(), -1) == 1;
}

bool set_serial(X509& certificate) {
  const NumberPointer number(BN_new());
  return number != nullptr &&
         BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

bool set_names(X509& certificate, X509& issuer, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(&certificate);
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                    0) == 1 &&
         X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer)) == 1;
}

bool set_times(X509& certificate, uint32_t days) {
  constexpr long kClocks_s = -300;  // of hosts differ
  return X509_gmtime_adj(X509_getm_notBefore(&certificate), kClocks_s) != nullptr &&
         X509_time_adj_ex(X509_getm_notAfter(&certificate), static_cast<int>(days), 0, nullptr) !=
             nullptr;
}

// Signed by `by`, or by itself.
bool issue(Issued& out, Issued* by, const std::string& name, const std::string& uri,
           uint32_t days) {
  out.key.reset(EVP_EC_gen("P-256"));
  out.certificate.reset(X509_new());
  if (!out.key || !out.certificate) return false;
  X509& certificate = *out.certificate;
  Issued& issuer = by == nullptr ? out : *by;
  const bool authority = by == nullptr;
  return X509_set_version(&certificate, kVersion3) == 1 && set_serial(certificate) &&
         set_names(certificate, *issuer.certificate, name) && set_times(certificate, days) &&
         X509_set_pubkey(&certificate, out.key.get()) == 1 &&
         add_extension(certificate, *issuer.certificate, NID_basic_constraints,
                       authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
         add_extension(certificate, *issuer.certificate, NID_key_usage,
                       authority ? "critical,keyCertSign" : "critical,digitalSignature") &&
         (uri.empty() ||
          add_extension(certificate, *issuer.certificate, NID_subject_alt_name, "URI:" + uri)) &&
         X509_sign(&certificate, issuer.key.get(), EVP_sha256()) > 0;
}

std::string text_of(BIO& bio) {
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(&bio, &data);
  return bytes > 0 ? std::string(data, static_cast<size_t>(bytes)) : std::string();
}

CertifiedKey in_pem(const Issued& one) {
  const BioPointer certificate(BIO_new(BIO_s_mem()));
  const BioPointer key(BIO_new(BIO_s_secmem()));
  if (!certificate || !key || PEM_write_bio_X509(certificate.get(), one.certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key.get(), one.key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return {};
  }
  return {text_of(*certificate), text_of(*key)};
}

}  // namespace

Result<GroupCertificates> make_certificates(const std::string& group, uint32_t ranks,
                                            uint32_t days) {
  const Error failed = internal_error("libcrypto makes no certificate");
  GroupCertificates out;
  Issued authority;
  if (!issue(authority, nullptr, "sealane authority of " + group, "", days)) return failed;
  out.authority = in_pem(authority);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Issued one;
    const std::string uri = fmt::format("sealane://{}/{}", group, rank);
    if (!issue(one, &authority, fmt::format("{} rank {}", group, rank), uri, days)) return failed;
    out.ranks.push_back(in_pem(one));
    if (out.ranks.back().key.empty()) return failed;
  }
  if (out.authority.key.empty()) return failed;
  return out;
}

}  // namespace sealane::cli
