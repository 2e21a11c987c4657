// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
// Are the tables of src/nccl/abi.h laid out as NCCL's own headers say? Compiled where a machine has
// NCCL's sources: -DSEALANE_NCCL_SOURCE=DIRECTORY.

#include "nccl/abi.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "nccl_net.h"

namespace sealane::nccl {
namespace {

#define SAME(ours, theirs, field) \
  EXPECT_EQ(offsetof(ours, field), offsetof(theirs, field)) << #theirs "." #field
#define SAME_SIZE(ours, theirs) EXPECT_EQ(sizeof(ours), sizeof(theirs)) << #theirs

TEST(Abi, PropertiesAreLaidOutAsNcclSays) {
  SAME_SIZE(PropertiesV8, ncclNetProperties_v8_t);
  SAME(PropertiesV8, ncclNetProperties_v8_t, maxRecvs);
  SAME(PropertiesV8, ncclNetProperties_v8_t, netDeviceVersion);
  SAME_SIZE(PropertiesV9, ncclNetProperties_v9_t);
  SAME_SIZE(PropertiesV9, ncclNetProperties_v10_t);
  SAME(PropertiesV9, ncclNetProperties_v9_t, vProps);
  SAME(PropertiesV9, ncclNetProperties_v10_t, maxCollBytes);
  SAME_SIZE(PropertiesV11, ncclNetProperties_v11_t);
  SAME(PropertiesV11, ncclNetProperties_v11_t, maxMultiRequestSize);
  SAME_SIZE(PropertiesV12, ncclNetProperties_v12_t);
  SAME(PropertiesV12, ncclNetProperties_v12_t, vProps);
  SAME(PropertiesV12, ncclNetProperties_v12_t, planeId);
}

TEST(Abi, TablesAreLaidOutAsNcclSays) {
  SAME_SIZE(NetV8, ncclNet_v8_t);
  SAME_SIZE(NetV9, ncclNet_v9_t);
  SAME_SIZE(NetV10, ncclNet_v10_t);
  SAME_SIZE(NetV11, ncclNet_v11_t);
  SAME_SIZE(NetV12, ncclNet_v12_t);
  SAME(NetV8, ncclNet_v8_t, isend);
  SAME(NetV8, ncclNet_v8_t, irecvConsumed);
  SAME(NetV9, ncclNet_v9_t, makeVDevice);
  SAME(NetV10, ncclNet_v10_t, test);
  SAME(NetV11, ncclNet_v11_t, finalize);
  SAME(NetV12, ncclNet_v12_t, setNetAttr);
}

TEST(Abi, NumbersAreNccls) {
  EXPECT_EQ(kHandleBytes, NCCL_NET_HANDLE_MAXSIZE);
  EXPECT_EQ(kRequestsMax, NCCL_NET_MAX_REQUESTS);
  EXPECT_EQ(kPointerHost, NCCL_PTR_HOST);
  EXPECT_EQ(kPointerCuda, NCCL_PTR_CUDA);
  EXPECT_EQ(int{kSuccess}, int{ncclSuccess});
  EXPECT_EQ(int{kRemoteError}, int{ncclRemoteError});
  EXPECT_EQ(int{kInvalidUsage}, int{ncclInvalidUsage});
  EXPECT_EQ(int{kLogWarn}, int{NCCL_LOG_WARN});
  EXPECT_EQ(int{kLogInfo}, int{NCCL_LOG_INFO});
  EXPECT_EQ(kLogNet, static_cast<unsigned long>(NCCL_NET));
}

}  // namespace
}  // namespace sealane::nccl
