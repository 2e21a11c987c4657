// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL's TLS 1.3 reduced to what a Session needs: bytes in, bytes out, one cipher suite, no
// tickets, no resumption, no early data. Private to core/session.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/session/identity.h"

namespace sealane {

class TlsEnd {
 public:
  enum class Role { client, server };

  static Result<std::unique_ptr<TlsEnd>> create(Role role, const Credentials& credentials);
  ~TlsEnd();

  // Before the handshake, with a pre-shared key: the one of this session alone, of which OpenSSL
  // keeps copies and derivates.
  void use_session_key(Key psk) { psk_ = std::move(psk); }

  void handle_received(Bytes bytes);
  std::vector<uint8_t> poll_transmit();

  // True when the handshake is done, false when it needs more bytes.
  Result<bool> handshake();

  // A peer error if the channel is broken already.
  Status write(Bytes plaintext);
  // Appends what has been decrypted, and wipes the old memory when the vector grows. A peer error
  // if the peer closed the channel, a crypto error if somebody tampered with it.
  Status read(std::vector<uint8_t>& plaintext);

  void export_secret(std::string_view label, Bytes context, MutableBytes out) const;
  void forget_exporter();  // nothing is exported after this

  // True if the peer's certificate carries that URI as a subject alternative name.
  bool peer_has_uri(const std::string& uri) const;

 private:
  TlsEnd() = default;

  static int on_use_psk(SSL* ssl, const EVP_MD* digest, const unsigned char** id, size_t* id_length,
                        SSL_SESSION** session);
  static int on_find_psk(SSL* ssl, const unsigned char* id, size_t id_length,
                         SSL_SESSION** session);
  static void on_secret(const SSL* ssl, const char* line);
  size_t bytes_of_object() const;
  void find_secrets();
  void leave();
  SSL_SESSION* psk_session() const;
  void forget_keys();
  Error explain() const;
  Error explain_handshake() const;

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  // OpenSSL keeps what it derives inside of its object and gives that back as it is. Where in it
  // they are is found out with what it tells a log of keys, and overwritten when they have served.
  struct Derived {
    std::array<uint8_t, 48> bytes;  // SHA-384's
    bool exporter;
  };
  struct Place {
    size_t at;
    bool exporter;
  };

  Secret<uint8_t> here_;  // gone in every child
  bool preshared_ = false;
  bool pairwise_ = false;  // the key is of the two ranks alone
  bool established_ = false;
  std::optional<Key> psk_;                // until the handshake is done
  std::vector<Secret<Derived>> derived_;  // likewise
  std::vector<Place> places_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace sealane
