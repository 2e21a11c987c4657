// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL's TLS 1.3 reduced to what a Session needs: bytes in, bytes out, one cipher suite, no
// tickets, no resumption, no early data. Private to core/session.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/session/identity.h"

namespace sealane {

// What the pre-shared key's identity field says, and what a server expects of it.
std::string psk_identity(const Identity& server, uint32_t client);

class TlsEnd {
 public:
  enum class Role { client, server };

  // `peer` is the server's rank for a client.
  static Result<std::unique_ptr<TlsEnd>> create(Role role, const Identity& self,
                                                std::optional<uint32_t> peer,
                                                const Credentials& credentials);

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

  // Server with a pre-shared key: the rank the client claimed to be.
  std::optional<uint32_t> claimed_client() const { return claimed_client_; }

  // True if the peer's certificate carries that URI as a subject alternative name.
  bool peer_has_uri(const std::string& uri) const;

 private:
  TlsEnd() = default;

  Status use_preshared_key(SSL_CTX* context, const PresharedKey& preshared);
  static int on_use_psk(SSL* ssl, const EVP_MD* digest, const unsigned char** id, size_t* id_length,
                        SSL_SESSION** session);
  static int on_find_psk(SSL* ssl, const unsigned char* id, size_t id_length,
                         SSL_SESSION** session);
  SSL_SESSION* psk_session() const;
  Error explain() const;
  Error explain_handshake() const;

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  Role role_ = Role::client;
  Identity self_;
  std::optional<uint32_t> peer_;
  bool preshared_ = false;
  bool established_ = false;
  std::optional<Key> psk_;  // until the handshake is done
  std::string psk_identity_;
  std::optional<uint32_t> claimed_client_;
  std::string refusal_;  // why a client's claim was turned down
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace sealane
