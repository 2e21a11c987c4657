// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Do two ranks get the same keys, and nobody else any, whatever an attacker on the wire does?

#include "core/session/session.h"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "base/random.h"
#include "base/text.h"
#include "core/session/key_chain.h"
#include "seal/find_in_memory_for_tests.h"

namespace sealane {
namespace {

Key key_of(uint8_t fill) {
  const std::vector<uint8_t> bytes(Key::kBytes, fill);
  return *Key::from_bytes(bytes);
}
bool same(const Key& a, const Key& b) { return constant_time_equal(a.secret(), b.secret()); }

// One end with everything it needs.
struct End {
  End(Credentials credentials_, Identity self, std::optional<uint32_t> peer, uint8_t broadcast_fill,
      Attestor* attestor = nullptr)
      : credentials(std::move(credentials_)), broadcast(key_of(broadcast_fill)) {
    auto made = Session::create({std::move(self), peer, &credentials, &broadcast, attestor});
    if (made) {
      session = std::move(*made);
    } else {
      error = made.error().message;
    }
  }
  Credentials credentials;
  Key broadcast;
  std::unique_ptr<Session> session;
  std::string error;
};

// What the network does with a flight of bytes.
using Wire = std::function<std::vector<uint8_t>(std::vector<uint8_t>)>;
std::vector<uint8_t> honest(std::vector<uint8_t> bytes) { return bytes; }

void talk(Session& a, Session& b, const Wire& to_b = honest, const Wire& to_a = honest) {
  for (int round = 0; round < 20; ++round) {
    const auto from_a = to_b(a.poll_transmit());
    const auto from_b = to_a(b.poll_transmit());
    if (from_a.empty() && from_b.empty()) return;
    if (!from_a.empty()) b.handle_received(from_a);
    if (!from_b.empty()) a.handle_received(from_b);
  }
}

Credentials psk(uint8_t fill) { return PresharedKey{key_of(fill)}; }

std::string failure(const End& end) {
  if (!end.error.empty()) return end.error;
  return end.session->failure() ? end.session->failure()->message : "";
}

TEST(Session, BothEndsGetTheSameKeys) {
  End client(psk(1), {"g", 4, 3}, 1, 30);
  End server(psk(1), {"g", 4, 1}, std::nullopt, 10);
  talk(*client.session, *server.session);
  ASSERT_TRUE(client.session->complete()) << failure(client);
  ASSERT_TRUE(server.session->complete()) << failure(server);
  EXPECT_EQ(server.session->peer(), 3u);
  SessionKeys at_client = client.session->take_keys();
  SessionKeys at_server = server.session->take_keys();
  EXPECT_TRUE(same(at_client.send, at_server.receive));
  EXPECT_TRUE(same(at_client.receive, at_server.send));
  EXPECT_FALSE(same(at_client.send, at_client.receive));
  EXPECT_TRUE(same(at_client.peer_broadcast, server.broadcast));
  EXPECT_TRUE(same(at_server.peer_broadcast, client.broadcast));
}

TEST(Session, EverySessionHasOtherKeys) {
  End client1(psk(1), {"g", 2, 1}, 0, 1), server1(psk(1), {"g", 2, 0}, std::nullopt, 2);
  End client2(psk(1), {"g", 2, 1}, 0, 1), server2(psk(1), {"g", 2, 0}, std::nullopt, 2);
  talk(*client1.session, *server1.session);
  talk(*client2.session, *server2.session);
  EXPECT_FALSE(same(client1.session->take_keys().send, client2.session->take_keys().send));
}

TEST(Session, MessagesPassAndAreAuthenticated) {
  for (const bool tamper : {false, true}) {
    End client(psk(1), {"g", 2, 1}, 0, 1), server(psk(1), {"g", 2, 0}, std::nullopt, 2);
    talk(*client.session, *server.session);
    client.session->send_message(as_bytes("hello"));
    auto flight = client.session->poll_transmit();
    if (tamper) flight.back() ^= 1;
    server.session->handle_received(flight);
    const auto message = server.session->poll_message();
    ASSERT_EQ(message.has_value(), !tamper);
    if (message) {
      EXPECT_EQ(as_text(*message), "hello");
      ASSERT_FALSE(server.session->failure());
      server.session->handle_received(flight);  // replayed
    }
    EXPECT_NE(failure(server).find("tampered with"), std::string::npos) << failure(server);
  }
}

TEST(Session, NeedsNothingOfItsSetupOnceComplete) {
  auto client = std::make_unique<End>(psk(1), Identity{"g", 2, 1}, 0u, 1);
  auto server = std::make_unique<End>(psk(1), Identity{"g", 2, 0}, std::nullopt, 2);
  talk(*client->session, *server->session);
  const auto a = std::move(client->session), b = std::move(server->session);
  client.reset();
  server.reset();
  EXPECT_TRUE(same(a->take_keys().send, b->take_keys().receive));
  a->send_message(as_bytes("still here"));
  talk(*a, *b);
  EXPECT_TRUE(b->poll_message());
}

struct Mismatch {
  const char* name;
  uint8_t client_key;
  Identity client;
  uint32_t towards;
  const char* complaint;  // of either end
};

TEST(Session, RefusesAWrongKeyGroupSizeOrRank) {
  const Mismatch cases[] = {
      {"key", 2, {"g", 4, 2}, 1, "pre-shared keys differ"},
      {"group", 1, {"h", 4, 2}, 1, "is of group 'h' with 4 ranks, this rank of 'g' with 4"},
      {"size", 1, {"g", 5, 2}, 1, "is of group 'g' with 5 ranks, this rank of 'g' with 4"},
      {"rank of server", 1, {"g", 4, 2}, 0, "claims to be rank 1"},
  };
  for (const Mismatch& c : cases) {
    SCOPED_TRACE(c.name);
    End client(psk(c.client_key), c.client, c.towards, 1);
    End server(psk(1), {"g", 4, 1}, std::nullopt, 2);
    talk(*client.session, *server.session);
    EXPECT_FALSE(client.session->complete());
    EXPECT_FALSE(server.session->complete());
    const std::string heard = failure(client) + failure(server);
    EXPECT_NE(heard.find(c.complaint), std::string::npos) << heard;
  }
}

std::string heard_by_a_server(Bytes first_bytes) {
  End server(psk(1), {"g", 2, 0}, std::nullopt, 2);
  server.session->handle_received(first_bytes);
  return failure(server);
}

TEST(Session, APeerOfAnotherVersionIsRefusedByName) {
  const uint8_t tls_record[] = {0x16, 3, 1, 0, 200};
  EXPECT_EQ(heard_by_a_server(tls_record),
            "the peer speaks version 1 of Sealane's protocol, this rank 5: run the same Sealane on "
            "every rank");
  EXPECT_NE(heard_by_a_server(as_bytes("sealane\x07")).find("speaks version 7"), std::string::npos);
  EXPECT_NE(heard_by_a_server(as_bytes("GET / HTTP")).find("does not speak"), std::string::npos);
}

TEST(Session, AKeyAgainstACertificateIsSaid) {
  End client(psk(1), {"g", 2, 1}, 0, 1);
  End server(psk(1), {"g", 2, 0}, std::nullopt, 2);
  // As if the server had certificates: its hello says so, and TLS comes to nothing.
  talk(*client.session, *server.session, honest, [](std::vector<uint8_t> bytes) {
    if (as_text(bytes).starts_with("sealane")) bytes[50] = 1;
    return bytes;
  });
  EXPECT_NE(failure(client).find("the other a certificate"), std::string::npos) << failure(client);
}

// What OpenSSL keeps for as long as the connection lasts is of this session, and not even that key.
TEST(Session, LeavesNoPresharedKeyInMemory) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  End client(psk(1), {"g", 2, 1}, 0, 1), server(psk(1), {"g", 2, 0}, std::nullopt, 2);
  std::vector<uint8_t> client_hello, server_hello;
  const auto keep_first = [](std::vector<uint8_t>& kept) {
    return [&kept](std::vector<uint8_t> bytes) {
      if (kept.empty()) kept = bytes;
      return bytes;
    };
  };
  talk(*client.session, *server.session, keep_first(client_hello), keep_first(server_hello));
  ASSERT_TRUE(client.session->complete() && server.session->complete());
  auto psk = std::make_unique<Key>(psk_of_session(key_of(1), client_hello, server_hello));
  Needle needle(psk->secret());
  EXPECT_NE(needle.places(), "");
  psk.reset();
  EXPECT_EQ(needle.places(), "");
}

// Bytes 1 and 2 of a TLS record are a version number that means nothing in TLS 1.3; in its first
// flights, in the clear, they are not authenticated. Every other bit counts.
bool means_nothing(Bytes flight, size_t at) {
  size_t record = 0;
  while (record + 5 <= flight.size()) {
    const size_t end = record + 5 + (size_t{flight[record + 3]} << 8 | flight[record + 4]);
    if (at < end) return at == record + 1 || at == record + 2;
    record = end;
  }
  return false;
}

TEST(Session, AnyFlippedBitEndsIt) {
  SeededRandom random(5);
  int ended = 0;
  for (int trial = 0; trial < 200; ++trial) {
    End client(psk(1), {"g", 2, 1}, 0, 1), server(psk(1), {"g", 2, 0}, std::nullopt, 2);
    uint64_t countdown = random.below(1200);
    bool flipped = false;
    const auto flip = [&](std::vector<uint8_t> bytes) {
      if (!flipped && countdown < bytes.size() && !means_nothing(bytes, countdown)) {
        bytes[countdown] ^= static_cast<uint8_t>(1 << random.below(8));
        flipped = true;
      }
      countdown -= std::min<uint64_t>(countdown, bytes.size());
      return bytes;
    };
    talk(*client.session, *server.session, flip, flip);
    if (!flipped) continue;
    ++ended;
    EXPECT_FALSE(client.session->complete() && server.session->complete()) << "trial " << trial;
  }
  EXPECT_GT(ended, 100);
}

TEST(Session, ReflectionLeadsNowhere) {
  End client(psk(1), {"g", 4, 2}, 1, 1);
  End self_as_server(psk(1), {"g", 4, 2}, std::nullopt, 1);  // the same rank's other door
  talk(*client.session, *self_as_server.session);
  EXPECT_FALSE(client.session->complete());
  EXPECT_FALSE(self_as_server.session->complete());

  End mirror(psk(1), {"g", 4, 2}, 1, 1);
  const auto own = mirror.session->poll_transmit();
  mirror.session->handle_received(own);
  EXPECT_TRUE(mirror.session->failure());
}

TEST(Session, AReplayedHandshakeGivesNoSession) {
  std::vector<std::vector<uint8_t>> recorded;
  End client(psk(1), {"g", 2, 1}, 0, 1), server(psk(1), {"g", 2, 0}, std::nullopt, 2);
  talk(*client.session, *server.session, [&](std::vector<uint8_t> bytes) {
    recorded.push_back(bytes);
    return bytes;
  });
  ASSERT_TRUE(server.session->complete());
  End fresh(psk(1), {"g", 2, 0}, std::nullopt, 2);
  for (const auto& flight : recorded) fresh.session->handle_received(flight);
  EXPECT_FALSE(fresh.session->complete());
}

TEST(Session, TruncatedInputWaitsAndNeverCompletes) {
  for (const size_t keep : {0, 1, 5, 50, 300}) {
    End client(psk(1), {"g", 2, 1}, 0, 1), server(psk(1), {"g", 2, 0}, std::nullopt, 2);
    size_t left = keep;
    talk(*client.session, *server.session, [&](std::vector<uint8_t> bytes) {
      bytes.resize(std::min(left, bytes.size()));
      left -= bytes.size();
      return bytes;
    });
    EXPECT_FALSE(client.session->complete());
    EXPECT_FALSE(server.session->complete());
  }
}

TEST(Session, GarbageIsRefusedAndADowngradeToo) {
  SeededRandom random(3);
  for (int trial = 0; trial < 100; ++trial) {
    End server(psk(1), {"g", 2, 0}, std::nullopt, 2);
    std::vector<uint8_t> garbage(random.below(600));
    random.fill(garbage);
    server.session->handle_received(garbage);
    EXPECT_FALSE(server.session->complete());
  }
  // A TLS 1.2 client hello with nothing of 1.3 in it.
  End server(psk(1), {"g", 2, 0}, std::nullopt, 2);
  std::vector<uint8_t> hello = {0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3};
  hello.resize(hello.size() + 32, 7);
  hello.insert(hello.end(), {0, 0, 2, 0xc0, 0x2f, 1, 0});
  server.session->handle_received(hello);
  EXPECT_TRUE(server.session->failure());
}

// ---- Secrets of pairs ----

// As rank `self` of three has them: what ranks i and j share is made of both numbers.
Credentials pairs_of(uint32_t self) {
  PairKeys keys;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    keys.by_rank.emplace_back();
    if (rank != self) {
      keys.by_rank.back() =
          key_of(static_cast<uint8_t>(10 * std::min(self, rank) + std::max(self, rank)));
    }
  }
  return keys;
}

TEST(SessionPairs, JoinBySecretsOfTheirOwn) {
  End client(pairs_of(2), {"g", 3, 2}, 0, 1), server(pairs_of(0), {"g", 3, 0}, std::nullopt, 2);
  talk(*client.session, *server.session);
  ASSERT_TRUE(client.session->complete()) << failure(client);
  SessionKeys at_client = client.session->take_keys();
  SessionKeys at_server = server.session->take_keys();
  EXPECT_TRUE(same(at_client.pair, at_server.pair));
  EXPECT_FALSE(same(at_client.pair, at_client.send));
  EXPECT_FALSE(same(at_client.pair, key_of(2)));  // what the next group joins by is new
}

TEST(SessionPairs, RefuseARankThatPosesAsAnother) {
  // To the server, and as the server: rank 2 as rank 1, and rank 1 as rank 0.
  End client(pairs_of(2), {"g", 3, 1}, 0, 1), server(pairs_of(0), {"g", 3, 0}, std::nullopt, 2);
  talk(*client.session, *server.session);
  EXPECT_FALSE(server.session->complete());
  EXPECT_NE(failure(server).find("does not have the secret"), std::string::npos) << failure(server);
  End victim(pairs_of(2), {"g", 3, 2}, 0, 1), poser(pairs_of(1), {"g", 3, 0}, std::nullopt, 2);
  talk(*victim.session, *poser.session);
  EXPECT_FALSE(victim.session->complete());
  EXPECT_NE(failure(victim), "");
  // A rank that is not of the group has no secret to be found.
  End stranger(psk(1), {"g", 4, 3}, 0, 1), door(pairs_of(0), {"g", 3, 0}, std::nullopt, 2);
  talk(*stranger.session, *door.session);
  EXPECT_NE(failure(door).find("shares no secret"), std::string::npos) << failure(door);
}

// ---- Certificates ----

using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
constexpr int64_t kNow = 1'700'000'000;

std::string pem_of(const std::function<void(BIO*)>& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  write(bio.get());
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(length)};
}

class Authority {
 public:
  Authority() : key_(EVP_EC_gen("P-256"), EVP_PKEY_free) {
    certificate_ = make(key_.get(), "CN", "", kNow - 1000, kNow + 100000);
  }

  std::string pem() const {
    return pem_of([&](BIO* bio) { PEM_write_bio_X509(bio, certificate_.get()); });
  }

  Certificates issue(const std::string& uri, const std::string& trusted, int64_t until) const {
    const PrivateKey key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const Certificate made = make(key.get(), "rank", uri, kNow - 1000, until);
    Certificates out;
    out.certificate = pem_of([&](BIO* bio) { PEM_write_bio_X509(bio, made.get()); });
    std::string pem = pem_of([&](BIO* bio) {
      PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    out.private_key = SecretPem(pem);
    wipe({reinterpret_cast<uint8_t*>(pem.data()), pem.size()});
    out.authorities = trusted;
    out.unix_seconds = kNow;
    return out;
  }

 private:
  Certificate make(EVP_PKEY* key, const char* name, const std::string& uri, int64_t from,
                   int64_t until) const {
    Certificate made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), uri.empty() ? 1 : 2);
    ASN1_TIME_set(X509_getm_notBefore(made.get()), from);
    ASN1_TIME_set(X509_getm_notAfter(made.get()), until);
    X509_set_pubkey(made.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509* issuer = certificate_ ? certificate_.get() : made.get();
    X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
    const auto extend = [&](int kind, const std::string& value) {
      X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
      X509_add_ext(made.get(), extension, -1);
      X509_EXTENSION_free(extension);
    };
    extend(NID_basic_constraints, uri.empty() ? "critical,CA:TRUE" : "CA:FALSE");
    if (!uri.empty()) extend(NID_subject_alt_name, "URI:" + uri);
    X509_sign(made.get(), key_.get(), EVP_sha256());
    return made;
  }

  PrivateKey key_;
  Certificate certificate_{nullptr, X509_free};
};

TEST(SessionCertificates, NameTheRank) {
  const Authority authority;
  const auto issue = [&](const char* uri) {
    return authority.issue(uri, authority.pem(), kNow + 1000);
  };
  End client(issue("sealane://g/3"), {"g", 4, 3}, 1, 1);
  End server(issue("sealane://g/1"), {"g", 4, 1}, std::nullopt, 2);
  ASSERT_EQ(failure(client) + failure(server), "");
  talk(*client.session, *server.session);
  ASSERT_TRUE(client.session->complete()) << failure(client);
  ASSERT_TRUE(server.session->complete()) << failure(server);
  EXPECT_EQ(server.session->peer(), 3u);
}

// As text, as a number, and as OpenSSL keeps numbers.
TEST(SessionCertificates, LeaveNoPrivateKeyInMemoryOnceTheSessionIsComplete) {
  if (!kMemoryIsSearchable) GTEST_SKIP() << "a sanitizer's memory is too large to search";
  const Authority authority;
  End client(authority.issue("sealane://g/1", authority.pem(), kNow + 50), {"g", 2, 1}, 0, 1);
  End server(authority.issue("sealane://g/0", authority.pem(), kNow + 50), {"g", 2, 0},
             std::nullopt, 2);
  ASSERT_EQ(failure(client), "");
  std::vector<Needle> needles;
  {
    const std::string_view pem = std::get<Certificates>(client.credentials).private_key.view();
    needles.emplace_back(as_bytes(pem.substr(40, 60)));  // some of the text
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
        BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
    const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr),
                         EVP_PKEY_free);
    BIGNUM* number = nullptr;
    ASSERT_EQ(EVP_PKEY_get_bn_param(key.get(), "priv", &number), 1);
    std::array<uint8_t, 32> bytes;
    ASSERT_EQ(BN_bn2binpad(number, bytes.data(), bytes.size()), 32);
    BN_clear_free(number);
    needles.emplace_back(bytes);
    std::ranges::reverse(bytes);
    needles.emplace_back(bytes);
    wipe(bytes);
  }
  EXPECT_NE(needles[2].places(), "") << "it is not what was looked for";
  talk(*client.session, *server.session);
  ASSERT_TRUE(client.session->complete()) << failure(client);
  client.credentials = psk(1);  // as who joins lets go of it
  for (Needle& needle : needles) EXPECT_EQ(needle.places(), "");
}

// OpenSSL would ask the terminal, or take the answer from the program's input, and wait.
TEST(SessionCertificates, AskNobodyForAPassphrase) {
  const Authority authority;
  Certificates files = authority.issue("sealane://g/1", authority.pem(), kNow + 50);
  const std::string_view plain = files.private_key.view();
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(plain.data(), static_cast<int>(plain.size())), BIO_free);
  const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr),
                       EVP_PKEY_free);
  unsigned char passphrase[] = "secret";
  const auto write_key = [&](auto* write) {
    return pem_of(
        [&](BIO* to) { write(to, key.get(), EVP_aes_256_cbc(), passphrase, 6, nullptr, nullptr); });
  };
  // As openssl writes them today (PKCS 8), and as it did long ago.
  const auto traditional = [](BIO* to, EVP_PKEY* of, const EVP_CIPHER* cipher, unsigned char* text,
                              int length, pem_password_cb* ask, void* context) {
    return PEM_write_bio_PrivateKey_traditional(to, of, cipher, text, length, ask, context);
  };
  int (*const today)(BIO*, const EVP_PKEY*, const EVP_CIPHER*, const unsigned char*, int,
                     pem_password_cb*, void*) = PEM_write_bio_PrivateKey;
  int (*const before)(BIO*, EVP_PKEY*, const EVP_CIPHER*, unsigned char*, int, pem_password_cb*,
                      void*) = traditional;
  for (const std::string& text : {write_key(today), write_key(before)}) {
    files.private_key = SecretPem(text);
    const End end(files, {"g", 2, 1}, 0, 1);
    EXPECT_NE(end.error.find("the private key is encrypted"), std::string::npos)
        << end.error << "\n"
        << text.substr(0, 60);
  }
}

TEST(SessionCertificates, RefuseAnotherRankGroupAuthorityOrTime) {
  const Authority authority;
  const Authority foreign;
  struct Case {
    const char* name;
    Certificates client;
    const char* complaint;
  };
  const Case cases[] = {
      {"rank", authority.issue("sealane://g/2", authority.pem(), kNow + 1000), "does not carry"},
      {"group", authority.issue("sealane://h/3", authority.pem(), kNow + 1000), "does not carry"},
      {"expired", authority.issue("sealane://g/3", authority.pem(), kNow - 10), "expired"},
      {"foreign", foreign.issue("sealane://g/3", authority.pem(), kNow + 1000), "not accepted"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    End client(c.client, {"g", 4, 3}, 1, 1);
    End server(authority.issue("sealane://g/1", authority.pem(), kNow + 1000), {"g", 4, 1},
               std::nullopt, 2);
    talk(*client.session, *server.session);
    EXPECT_FALSE(server.session->complete());
    EXPECT_NE(failure(server).find(c.complaint), std::string::npos) << failure(server);
  }
}

TEST(SessionCertificates, AndPresharedKeysDoNotMix) {
  const Authority authority;
  End client(psk(1), {"g", 2, 1}, 0, 1);
  End server(authority.issue("sealane://g/0", authority.pem(), kNow + 1000), {"g", 2, 0},
             std::nullopt, 2);
  talk(*client.session, *server.session);
  EXPECT_FALSE(client.session->complete());
  EXPECT_FALSE(server.session->complete());
}

// ---- Attestation ----

class TestAttestor final : public Attestor {
 public:
  Result<std::vector<uint8_t>> produce(Bytes binding) override {
    return std::vector<uint8_t>(binding.begin(), binding.end());
  }
  Status check(uint32_t, Bytes binding, Bytes evidence) override {
    if (!lenient_ && !constant_time_equal(binding, evidence)) return peer_error("wrong binding");
    seen_.assign(evidence.begin(), evidence.end());
    return refuse_ ? Status(peer_error("not today")) : Status();
  }
  bool refuse_ = false;
  bool lenient_ = false;
  std::vector<uint8_t> seen_;
};

TEST(SessionAttestation, IsBoundToSessionAndRank) {
  TestAttestor at_client, at_server;
  End client(psk(1), {"g", 2, 1}, 0, 1, &at_client);
  End server(psk(1), {"g", 2, 0}, std::nullopt, 2, &at_server);
  talk(*client.session, *server.session);
  ASSERT_TRUE(client.session->complete()) << failure(client);
  ASSERT_TRUE(server.session->complete()) << failure(server);
  EXPECT_NE(at_client.seen_, at_server.seen_);
}

TEST(SessionAttestation, ARefusedPeerGetsNoSecret) {
  TestAttestor at_client, at_server;
  at_server.refuse_ = true;
  End client(psk(1), {"g", 2, 1}, 0, 1, &at_client);
  End server(psk(1), {"g", 2, 0}, std::nullopt, 2, &at_server);
  talk(*client.session, *server.session);
  EXPECT_FALSE(client.session->complete());
  EXPECT_NE(failure(server).find("attestation of rank 1 refused"), std::string::npos);
}

TEST(SessionAttestation, EvidenceNobodyChecksIsRefused) {
  TestAttestor at_client;
  End client(psk(1), {"g", 2, 1}, 0, 1, &at_client);
  End server(psk(1), {"g", 2, 0}, std::nullopt, 2);
  talk(*client.session, *server.session);
  EXPECT_FALSE(server.session->complete());
}

// ---- Re-keying ----

TEST(KeyChain, LanesRekeyBeforeTheLimitAndStayInStep) {
  const Engine& engine = **chosen_engine();
  KeyLimits tiny;
  tiny.messages = 3;
  RekeyingSendLane sender(7, KeyChain(key_of(1), engine), tiny);
  RekeyingReceiveLane receiver(7, KeyChain(key_of(1), engine));
  std::vector<std::vector<uint8_t>> records;
  for (uint8_t i = 0; i < 20; ++i) {
    const std::vector<uint8_t> plaintext(100, i);
    std::vector<uint8_t> record(record_bytes(plaintext.size())), opened(100);
    ASSERT_TRUE(sender.seal_exposed({}, in_place(plaintext), record).ok());
    ASSERT_TRUE(receiver.open(record, opened).ok());
    EXPECT_EQ(opened, plaintext);
    records.push_back(record);
  }
  EXPECT_EQ(sender.epoch().number, 6u);
  EXPECT_EQ(receiver.epoch().number, 6u);
  std::vector<uint8_t> opened(100);
  EXPECT_FALSE(receiver.open(records[0], opened).ok()) << "an old epoch came back";
  EXPECT_EQ(opened, std::vector<uint8_t>(100, 0));
}

// Records 0, 1, 2 are of epoch 0 and 3, 4, 5 of epoch 1. The bus keeps the end of epoch 0.
TEST(KeyChain, TheEndOfAnEpochCannotBeCutOff) {
  const Engine& engine = **chosen_engine();
  KeyLimits tiny;
  tiny.messages = 3;
  for (const size_t arrive : {0u, 1u, 2u, 3u}) {
    RekeyingSendLane sender(7, KeyChain(key_of(1), engine), tiny);
    RekeyingReceiveLane receiver(7, KeyChain(key_of(1), engine));
    std::vector<uint8_t> opened(10);
    for (size_t i = 0; i < 4; ++i) {
      std::vector<uint8_t> record(record_bytes(10));
      ASSERT_TRUE(sender.seal_exposed({}, in_place(std::vector<uint8_t>(10, 5)), record).ok());
      if (i >= arrive && i < 3) continue;
      EXPECT_EQ(receiver.open(record, opened).ok(), i < 3 || arrive == 3) << arrive << " of 3";
    }
  }
}

TEST(KeyChain, AForgedEpochKillsTheLaneAndNothingElse) {
  const Engine& engine = **chosen_engine();
  RekeyingSendLane sender(7, KeyChain(key_of(1), engine));
  RekeyingReceiveLane receiver(7, KeyChain(key_of(1), engine));
  const std::vector<uint8_t> plaintext(100, 5);
  std::vector<uint8_t> record(record_bytes(100)), opened(100);
  ASSERT_TRUE(sender.seal_exposed({}, in_place(plaintext), record).ok());
  record[12] = 1;  // epoch
  EXPECT_FALSE(receiver.open(record, opened).ok());
  EXPECT_EQ(opened, std::vector<uint8_t>(100, 0));
}

}  // namespace
}  // namespace sealane
