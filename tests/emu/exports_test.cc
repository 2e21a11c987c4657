// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Is every entry point there, by symbol and by cuGetProcAddress, and does the driver keep to the
// rules of drivers: no static destructors, no way through its own PLT? Where NVIDIA's toolkit is
// installed: are our declarations the same, and does a program built by nvcc run unmodified?

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "cuda_abi/cuda_types.h"
#include "support/run_program.h"

namespace sealane::test {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string name;
  int version;
  std::string symbol;
  bool per_thread;
};

#define EMU_EXPORT(name, version, symbol, per_thread) {#name, version, #symbol, per_thread},
const std::vector<Row> kRows = {
#include "emu/driver/exports.def"
#include "emu/driver/unsupported.def"
};
#undef EMU_EXPORT

const std::string kDriver = SEALANE_EMU_DIR "/libcuda.so.1";

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

class ExportsTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(kDriver.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    get_ = reinterpret_cast<GetProcAddress>(dlsym(library_, "cuGetProcAddress_v2"));
    ASSERT_NE(get_, nullptr);
  }
  void* symbol(const std::string& name) { return dlsym(library_, name.c_str()); }
  void* by_name(const char* name, int version, cuuint64_t flags) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    EXPECT_EQ(get_(name, &found, version, flags, &status), CUDA_SUCCESS) << name;
    return found;
  }

  void* library_ = nullptr;
  GetProcAddress get_ = nullptr;
};

TEST_F(ExportsTest, EveryRowIsASymbolAndAnAnswer) {
  EXPECT_GT(kRows.size(), 600u);
  for (const Row& row : kRows) {
    void* exported = symbol(row.symbol);
    ASSERT_NE(exported, nullptr) << row.symbol;
    const cuuint64_t flags = row.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                            : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    EXPECT_EQ(by_name(row.name.c_str(), row.version, flags), exported) << row.symbol;
  }
}

TEST_F(ExportsTest, VersionAndFlagsChooseTheVariant) {
  EXPECT_EQ(by_name("cuMemAlloc", 3020, 0), symbol("cuMemAlloc_v2"));
  EXPECT_EQ(by_name("cuMemAlloc", 13000, 0), symbol("cuMemAlloc_v2"));
  EXPECT_EQ(by_name("cuMemcpyHtoDAsync", 12000, 2), symbol("cuMemcpyHtoDAsync_v2_ptsz"));
  EXPECT_EQ(by_name("cuMemcpyHtoD", 12000, 2), symbol("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(by_name("cuMemcpyHtoD", 12000, 1), symbol("cuMemcpyHtoD_v2"));
  EXPECT_EQ(by_name("cuCtxCreate", 12000, 0), symbol("cuCtxCreate_v3"));
  EXPECT_EQ(by_name("cuCtxCreate", 12050, 0), symbol("cuCtxCreate_v4"));
  EXPECT_EQ(by_name("cuMemAlloc", 12000, 2), symbol("cuMemAlloc_v2")) << "has no twin";
}

TEST_F(ExportsTest, SaysWhyThereIsNoAnswer) {
  void* found = this;
  CUdriverProcAddressQueryResult status{};
  EXPECT_EQ(get_("cuNoSuchCall", &found, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(get_("cuGraphLaunch", &found, 9000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(get_("cuInit", &found, 13000, 3, &status), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(get_("cuNoSuchCall", &found, 13000, 0, nullptr), CUDA_ERROR_NOT_FOUND);
}

struct Names {
  std::set<std::string> version_12;
  std::set<std::string> version_13;
};

Names names_of_the_runtime() {
  Names out;
#define EMU_ONLY_12(name) out.version_12.insert(#name);
#define EMU_ONLY_13(name) out.version_13.insert(#name);
#define EMU_BOTH(name) EMU_ONLY_12(name) EMU_ONLY_13(name)
#include "emu/runtime/names.def"
#undef EMU_BOTH
#undef EMU_ONLY_12
#undef EMU_ONLY_13
  return out;
}

std::set<std::string> names_of_nvml() {
#define EMU_NVML_NAME(name) #name,
  return {
#include "emu/nvml/names.def"
  };
#undef EMU_NVML_NAME
}

// A library whose undefined names are found at once or not at all loads.
void expect_all(const std::string& library, const std::set<std::string>& names) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(opened, nullptr) << dlerror();
  for (const std::string& name : names) {
    EXPECT_NE(dlsym(opened, name.c_str()), nullptr) << name << " of " << library;
  }
}

TEST(Runtime, EveryNameIsThere) {
  const Names names = names_of_the_runtime();
  EXPECT_GT(names.version_13.size(), 420u);
  EXPECT_GT(names.version_12.size(), 420u);
  expect_all(SEALANE_EMU_DIR "/libcudart.so.12", names.version_12);
  expect_all(SEALANE_EMU_DIR "/libcudart.so.13", names.version_13);
}

TEST(Nvml, EveryNameIsThere) {
  EXPECT_GT(names_of_nvml().size(), 400u);
  expect_all(SEALANE_EMU_DIR "/libnvidia-ml.so.1", names_of_nvml());
}

std::string said_by(int (*call)(), int expected) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(call(), expected);
  EXPECT_EQ(call(), expected);
  return testing::internal::GetCapturedStderr();
}

TEST(Runtime, AMissingCallIsAnErrorCodeSaidOnce) {
  void* const runtime = dlopen(SEALANE_EMU_DIR "/libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(runtime, nullptr) << dlerror();
  const auto missing = reinterpret_cast<int (*)()>(dlsym(runtime, "cudaCreateTextureObject"));
  const auto last = reinterpret_cast<int (*)()>(dlsym(runtime, "cudaGetLastError"));
  EXPECT_EQ(said_by(missing, CUDA_ERROR_NOT_SUPPORTED),
            "sealane emulated GPU: cudaCreateTextureObject is not supported (said once)\n");
  EXPECT_EQ(last(), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(Nvml, AMissingCallIsAnErrorCodeSaidOnce) {
  void* const nvml = dlopen(SEALANE_EMU_DIR "/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(nvml, nullptr) << dlerror();
  const auto missing = reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlVgpuTypeGetName"));
  constexpr int kNotSupported = 3;
  EXPECT_EQ(said_by(missing, kNotSupported),
            "sealane emulated GPU: nvmlVgpuTypeGetName is not supported (said once)\n");
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + "\n") {
    if (c == ' ' || c == '\n') {
      words.insert(word);
      word.clear();
    } else {
      word += c;
    }
  }
  return words;
}

TEST(Driver, HasNoStaticDestructorsAndHidesTheRest) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers add their own symbols";
#endif
  const ProgramResult needed = run_program({"nm", "-D", "--undefined-only", kDriver});
  ASSERT_EQ(needed.exit_code, 0) << needed.err;
  const auto wanted = words_of(needed.out);
  for (const std::string& word : wanted) {
    EXPECT_FALSE(word.starts_with("__cxa_atexit")) << "a static object with a destructor";
    EXPECT_FALSE(word.starts_with("cu")) << word << " goes through the PLT";
    EXPECT_FALSE(word.starts_with("EVP_")) << word << ": the usual driver links no libcrypto";
  }
  const ProgramResult defined =
      run_program({"nm", "-D", "--defined-only", "--format=posix", kDriver});
  ASSERT_EQ(defined.exit_code, 0);
  size_t start = 0;
  while (start < defined.out.size()) {
    const size_t end = defined.out.find('\n', start);
    const std::string name = defined.out.substr(start, defined.out.find(' ', start) - start);
    EXPECT_TRUE(name.starts_with("cu") || name.starts_with("sealane_emu_")) << name;
    start = end + 1;
  }
}

TEST(Runtime, CarriesItsSymbolVersion) {
  for (const std::string major : {"12", "13"}) {
    const std::string library = SEALANE_EMU_DIR "/libcudart.so." + major;
    const ProgramResult symbols = run_program({"nm", "-D", "--defined-only", library});
    ASSERT_EQ(symbols.exit_code, 0) << symbols.err;
    EXPECT_NE(symbols.out.find("cudaMemcpyAsync@@libcudart.so." + major), std::string::npos);
    EXPECT_NE(symbols.out.find("__cudaRegisterFatBinary@@libcudart.so." + major),
              std::string::npos);
  }
}

// NVIDIA's toolkit, empty: not installed here.
fs::path toolkit() {
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* place = std::getenv(variable);
    if (place != nullptr && fs::exists(fs::path(place) / "bin/nvcc")) return place;
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/usr/local", error)) {
    const bool cuda = entry.path().filename().string().starts_with("cuda");
    if (cuda && fs::exists(entry.path() / "bin/nvcc")) return entry.path();
  }
  return {};
}

class ToolkitTest : public testing::Test {
 protected:
  void SetUp() override {
    place_ = toolkit();
    if (place_.empty()) GTEST_SKIP() << "no CUDA toolkit here";
    scratch_ = fs::temp_directory_path() / ("sealane-emu-nvcc-" + std::to_string(getpid()));
    fs::create_directories(scratch_);
  }
  void TearDown() override {
    std::error_code ignored;
    if (!scratch_.empty()) fs::remove_all(scratch_, ignored);
  }
  void build(const std::vector<std::string>& command) {
    const ProgramResult result = run_program(command);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  fs::path place_;
  fs::path scratch_;
};

// Our table of names is NVIDIA's, neither less nor more.
TEST_F(ToolkitTest, TheRuntimeHasTheSameNames) {
  const std::string library = (place_ / "lib64/libcudart.so.13").string();
  if (!fs::exists(library)) GTEST_SKIP() << "no shared runtime 13 here";
  const ProgramResult listed =
      run_program({"nm", "-D", "--defined-only", "--format=posix", library});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  std::set<std::string> theirs;
  for (const std::string& word : words_of(listed.out)) {
    const std::string name = word.substr(0, word.find('@'));
    if (name.starts_with("cuda") || name.starts_with("__cuda")) theirs.insert(name);
  }
  EXPECT_EQ(names_of_the_runtime().version_13, theirs);
}

TEST_F(ToolkitTest, ErrorsHaveTheSameNamesAndTexts) {
  const std::string library = (place_ / "lib64/libcudart.so.13").string();
  if (!fs::exists(library)) GTEST_SKIP() << "no shared runtime 13 here";
  void* const theirs = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const ours = dlopen(SEALANE_EMU_DIR "/libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(theirs != nullptr && ours != nullptr) << dlerror();
  using Words = const char* (*)(int);
  for (const char* question : {"cudaGetErrorName", "cudaGetErrorString"}) {
    const auto expected = reinterpret_cast<Words>(dlsym(theirs, question));
    const auto said = reinterpret_cast<Words>(dlsym(ours, question));
    ASSERT_TRUE(expected != nullptr && said != nullptr && expected != said);
    int known = 0;
    for (int code = -1; code <= 10'100; ++code) {
      EXPECT_STREQ(said(code), expected(code)) << question << " of " << code;
      known += std::string(expected(code)) != expected(-1) ? 1 : 0;
    }
    EXPECT_GT(known, 100);
  }
}

TEST_F(ToolkitTest, NvmlHasTheSameNames) {
  std::ifstream header(place_ / "include/nvml.h");
  if (!header) GTEST_SKIP() << "no nvml.h here";
  const std::set<std::string> ours = names_of_nvml();
  std::string word;
  bool declares = false;
  while (header >> word) {
    const std::string name = word.substr(0, word.find('('));
    if (declares && name.starts_with("nvml")) {
      EXPECT_TRUE(ours.count(name) == 1) << name;
    }
    declares = word == "DECLDIR";
  }
}

// A program whose runtime is linked statically cannot run here, and is told so.
TEST_F(ToolkitTest, AProgramThatBringsItsRuntimeIsToldWhatToDo) {
  const std::string program = (scratch_ / "static").string();
  build({(place_ / "bin/nvcc").string(), "-allow-unsupported-compiler",
         SEALANE_TEST_SOURCE_DIR "/plain.cu", "-o", program});
  const ProgramResult result = run_program({SEALANE_PROGRAM, "run", "--emulate", "--", program});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find(program + " is or contains NVIDIA's CUDA runtime"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("--cudart shared"), std::string::npos) << result.err;
}

// A layout printed by the same source against either header.
TEST_F(ToolkitTest, OurDeclarationsHaveTheSameLayout) {
  const std::string source = SEALANE_TEST_SOURCE_DIR "/layout.c";
  const std::string ours = (scratch_ / "ours").string();
  const std::string theirs = (scratch_ / "theirs").string();
  build({"cc", "-I", SEALANE_EMU_SOURCE_DIR "/abi", source, "-o", ours});
  build({"cc", "-I", (place_ / "include").string(), source, "-o", theirs});
  EXPECT_EQ(run_program({ours}).out, run_program({theirs}).out);
}

TEST_F(ToolkitTest, AProgramOfNvccRunsUnmodified) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "nvcc's program does not bring a sanitizer's runtime";
#endif
  const std::string program = (scratch_ / "plain").string();
  const std::string kernels = (scratch_ / "kernels.so").string();
  build({(place_ / "bin/nvcc").string(), "--cudart", "shared", "-allow-unsupported-compiler",
         SEALANE_TEST_SOURCE_DIR "/plain.cu", "-o", program});
  build({"cc", "-shared", "-fPIC", "-I", SEALANE_EMU_SOURCE_DIR "/abi",
         SEALANE_TEST_SOURCE_DIR "/plain_kernels.c", "-o", kernels});
  for (const std::string cc : {"on", "off"}) {
    const ProgramResult result = run_program(
        {SEALANE_PROGRAM, "run", "--emulate", "--cc", cc, "--kernels", kernels, "--", program});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  }
}

}  // namespace
}  // namespace sealane::test
