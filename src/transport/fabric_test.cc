// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does every kind of wire deliver every record once, in order and unchanged, within its bounds?

#include "transport/fabric.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "base/random.h"
#include "transport/mixed_fabric.h"
#include "transport/shm_fabric.h"
#include "transport/tcp_fabric.h"

namespace sealane {
namespace {

constexpr uint32_t kRecordBytes = 5000;

WireShape shape_of(uint32_t size, uint32_t rank) {
  WireShape shape;
  shape.size = size;
  shape.rank = rank;
  shape.pair_slots = 3;
  shape.broadcast_slots = 4;
  shape.record_bytes = kRecordBytes;
  return shape;
}

using Fabrics = std::vector<std::unique_ptr<Fabric>>;

Fabrics make_shm(uint32_t size, bool scarce) {
  std::vector<SharedSegment> own;
  for (uint32_t rank = 0; rank < size; ++rank) {
    own.push_back(*SharedSegment::create(ShmFabric::outbox_bytes(shape_of(size, rank))));
  }
  Fabrics fabrics;
  for (uint32_t rank = 0; rank < size; ++rank) {
    std::vector<SharedSegment> all;
    for (const SharedSegment& segment : own) {
      all.push_back(*SharedSegment::adopt(dup(segment.descriptor()), segment.bytes()));
    }
    fabrics.push_back(std::make_unique<ShmFabric>(shape_of(size, rank), std::move(all), scarce));
  }
  return fabrics;
}

// `host[r]` is where rank r lives: ranks of one host get no connections.
std::vector<std::vector<TcpConnections>> connect_all(const std::vector<uint32_t>& host,
                                                     uint32_t streams) {
  const auto size = static_cast<uint32_t>(host.size());
  std::vector<std::vector<TcpConnections>> ends(size);
  for (auto& end : ends) end.resize(size);
  for (uint32_t a = 0; a < size; ++a) {
    for (uint32_t b = a + 1; b < size; ++b) {
      if (host[a] == host[b]) continue;
      for (uint32_t i = 0; i < 2 * streams; ++i) {
        int pair[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        (i % 2 == 0 ? ends[a][b].broadcast : ends[a][b].pair).emplace_back(pair[0]);
        (i % 2 == 0 ? ends[b][a].broadcast : ends[b][a].pair).emplace_back(pair[1]);
      }
    }
  }
  return ends;
}

Fabrics make_tcp(uint32_t size, uint32_t streams) {
  std::vector<uint32_t> host(size);
  std::iota(host.begin(), host.end(), 0u);
  auto ends = connect_all(host, streams);
  Fabrics fabrics;
  for (uint32_t rank = 0; rank < size; ++rank) {
    fabrics.push_back(std::make_unique<TcpFabric>(shape_of(size, rank), std::move(ends[rank])));
  }
  return fabrics;
}

// All ranks but the last on one host.
Fabrics make_mixed(uint32_t size) {
  std::vector<uint32_t> host(size, 0);
  host.back() = 1;
  auto ends = connect_all(host, 1);
  std::vector<uint32_t> local(size - 1);
  std::iota(local.begin(), local.end(), 0u);
  std::vector<SharedSegment> own;
  std::vector<Socket> bells;
  for (uint32_t rank = 0; rank + 1 < size; ++rank) {
    own.push_back(*SharedSegment::create(ShmFabric::outbox_bytes(shape_of(size - 1, rank))));
    bells.emplace_back(eventfd(0, EFD_NONBLOCK));
  }
  Fabrics fabrics;
  for (uint32_t rank = 0; rank + 1 < size; ++rank) {
    std::vector<SharedSegment> all;
    std::vector<Socket> ring;
    for (uint32_t other = 0; other + 1 < size; ++other) {
      all.push_back(*SharedSegment::adopt(dup(own[other].descriptor()), own[other].bytes()));
      ring.emplace_back(dup(bells[other].descriptor()));
    }
    auto shm = std::make_unique<ShmFabric>(shape_of(size - 1, rank), std::move(all), false,
                                           std::move(ring));
    auto tcp = std::make_unique<TcpFabric>(shape_of(size, rank), std::move(ends[rank]));
    fabrics.push_back(std::make_unique<MixedFabric>(shape_of(size, rank), local, std::move(shm),
                                                    std::move(tcp),
                                                    Socket(dup(bells[rank].descriptor()))));
  }
  fabrics.push_back(std::make_unique<TcpFabric>(shape_of(size, size - 1), std::move(ends.back())));
  return fabrics;
}

enum class Kind { shm, shm_scarce, tcp, tcp_striped, mixed };
Fabrics make(Kind kind, uint32_t size) {
  switch (kind) {
    case Kind::tcp:
      return make_tcp(size, 1);
    case Kind::tcp_striped:
      return make_tcp(size, 3);
    case Kind::mixed:
      return make_mixed(size);
    default:
      return make_shm(size, kind == Kind::shm_scarce);
  }
}

std::vector<uint8_t> record_of(uint32_t from, uint32_t wire, uint32_t number) {
  SeededRandom random(from * 1'000'003 + wire * 1009 + number);
  std::vector<uint8_t> record(1 + random.below(kRecordBytes));
  random.fill(record);
  return record;
}

class Wires : public testing::TestWithParam<Kind> {};

TEST_P(Wires, DeliverEverythingOnceInOrderWhenAllSendFirst) {
  constexpr uint32_t kSize = 3;
  constexpr uint32_t kCount = 200;
  Fabrics fabrics = make(GetParam(), kSize);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&, rank] {
      Fabric& fabric = *fabrics[rank];
      std::vector<uint32_t> sent(kSize + 1), received(2 * kSize);
      uint32_t left = kCount * (kSize + 2 * (kSize - 1));
      while (left > 0 || !fabric.flush()) {
        const uint32_t before = left;
        for (uint32_t wire = 0; wire <= kSize; ++wire) {
          if (wire == rank || sent[wire] == kCount || !fabric.writable(wire)) continue;
          const auto record = record_of(rank, wire, sent[wire]++);
          std::copy(record.begin(), record.end(), fabric.slot(wire).begin());
          fabric.commit(wire, record.size());
          --left;
        }
        for (uint32_t wire = 0; wire < 2 * kSize; ++wire) {
          const uint32_t peer = wire % kSize;
          if (peer == rank || received[wire] == kCount || !fabric.readable(wire)) continue;
          const Bytes got = fabric.front(wire);
          const uint32_t sent_on = wire < kSize ? rank : kSize;
          const auto wanted = record_of(peer, sent_on, received[wire]++);
          EXPECT_TRUE(std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()));
          fabric.pop(wire);
          --left;
        }
        if (left < before) continue;
        fabric.prepare_wait();
        bool something = false;
        for (uint32_t wire = 0; wire < 2 * kSize; ++wire) {
          something = something || (wire % kSize != rank && fabric.readable(wire));
        }
        if (!something) fabric.wait(std::chrono::milliseconds(5));
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST_P(Wires, AreBounded) {
  Fabrics fabrics = make(GetParam(), 2);
  Fabric& fabric = *fabrics[0];
  int accepted = 0;
  while (fabric.writable(1) && accepted < 10'000) {
    fabric.commit(1, kRecordBytes);
    ++accepted;
  }
  EXPECT_LT(accepted, 10'000) << "memory without bound";
  EXPECT_TRUE(fabric.writable(2)) << "a full wire blocks another one";
  EXPECT_LE(fabric.memory_bytes(), 200u << 10);
}

INSTANTIATE_TEST_SUITE_P(All, Wires,
                         testing::Values(Kind::shm, Kind::shm_scarce, Kind::tcp, Kind::tcp_striped,
                                         Kind::mixed));

TEST(SharedSegment, RefusesWhatCouldShrinkOrHasAnotherSize) {
  auto segment = SharedSegment::create(8192);
  ASSERT_TRUE(segment.ok());
  EXPECT_FALSE(SharedSegment::adopt(dup(segment->descriptor()), 4096).ok());
  EXPECT_NE(ftruncate(segment->descriptor(), 0), 0);
  FILE* file = std::tmpfile();
  ASSERT_EQ(ftruncate(fileno(file), 8192), 0);
  EXPECT_FALSE(SharedSegment::adopt(dup(fileno(file)), 8192).ok());
  std::fclose(file);
}

TEST(TcpFabric, TellsWhenAPeerIsGone) {
  Fabrics fabrics = make_tcp(2, 2);
  fabrics[1].reset();
  EXPECT_FALSE(fabrics[0]->readable(1));
  EXPECT_TRUE(fabrics[0]->lost(1));
}

}  // namespace
}  // namespace sealane
