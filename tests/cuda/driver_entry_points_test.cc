// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Does cuGetProcAddress give the right variant of a call for a name, a version and flags?

#include <dlfcn.h>

#include "cuda/driver.h"

namespace sealane::test {
namespace {

void* entry(const char* name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT_EQ(cuGetProcAddress(name, &function, version, flags, &status), CUDA_SUCCESS) << name;
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS) << name;
  return function;
}

void* symbol(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  EXPECT_NE(driver, nullptr);
  void* const found = dlsym(driver, name);
  EXPECT_NE(found, nullptr) << name;
  return found;
}

class DriverEntryPoints : public DriverTest {};

TEST_F(DriverEntryPoints, AVersionNamesAVariant) {
  EXPECT_EQ(entry("cuMemAlloc", 3020), symbol("cuMemAlloc_v2"));
  EXPECT_EQ(entry("cuMemAlloc", 12000), symbol("cuMemAlloc_v2"));
  EXPECT_EQ(entry("cuMemcpyHtoDAsync", 12000), symbol("cuMemcpyHtoDAsync_v2"));
  EXPECT_EQ(entry("cuStreamSynchronize", 12000), symbol("cuStreamSynchronize"));
  EXPECT_EQ(entry("cuMemcpyBatchAsync", 12090), symbol("cuMemcpyBatchAsync"));
  EXPECT_EQ(entry("cuMemcpyBatchAsync", 13000), symbol("cuMemcpyBatchAsync_v2"));
}

TEST_F(DriverEntryPoints, PerThreadFlagNamesTheTwin) {
  constexpr auto kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_EQ(entry("cuMemcpyHtoD", 12000, kPerThread), symbol("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(entry("cuMemcpyHtoDAsync", 12000, kPerThread), symbol("cuMemcpyHtoDAsync_v2_ptsz"));
  EXPECT_EQ(entry("cuMemcpyBatchAsync", 12080, kPerThread), symbol("cuMemcpyBatchAsync_ptsz"));
  EXPECT_EQ(entry("cuMemAlloc", 12000, kPerThread), symbol("cuMemAlloc_v2"));
}

TEST_F(DriverEntryPoints, UnknownAndTooNewNamesAreToldApart) {
  void* function = this;
  CUdriverProcAddressQueryResult status{};
  EXPECT_EQ(cuGetProcAddress("cuNoSuchCall", &function, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  function = this;
  EXPECT_EQ(cuGetProcAddress("cuMemcpyBatchAsync", &function, 4000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST_F(DriverEntryPoints, FindThemselves) {
  EXPECT_EQ(entry("cuGetProcAddress", 12000), symbol("cuGetProcAddress_v2"));
}

}  // namespace
}  // namespace sealane::test
