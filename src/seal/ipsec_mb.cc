// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "seal/ipsec_mb.h"

#include <intel-ipsec-mb.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/cpu.h"
#include "base/text.h"
#include "seal/secret_memory.h"

namespace sealane {
namespace {

// The direct GCM calls use the manager as a table of functions and keep no state in it, so one
// serves all threads. It also decides the layout of a scheduled key: schedule and use must go
// through the same one. Never freed: threads may still seal while the process exits.
struct Library {
  IMB_MGR* manager = nullptr;
  IMB_ARCH arch = IMB_ARCH_NONE;
  std::string problem;  // empty if usable
};

const char* arch_name(IMB_ARCH arch) {
  switch (arch) {
    case IMB_ARCH_SSE:
      return "SSE";
    case IMB_ARCH_AVX:
      return "AVX";
    case IMB_ARCH_AVX2:
      return "AVX2";
    case IMB_ARCH_AVX512:
      return "AVX512";
    default:
      return "none";
  }
}

// What a code path needs. The library crashes, rather than refuse, when started on a CPU without.
uint64_t features_needed(IMB_ARCH wanted) {
  switch (wanted) {
    case IMB_ARCH_AVX:
      return IMB_CPUFLAGS_AVX;
    case IMB_ARCH_AVX2:
      return IMB_CPUFLAGS_AVX2;
    case IMB_ARCH_AVX512:
      return IMB_CPUFLAGS_AVX512;
    default:
      return IMB_CPUFLAGS_SSE;
  }
}

// What SEALANE_CPU leaves of the library's code paths. VAES is used with AVX512, and with AVX2 by
// versions after this.
bool hidden(IMB_ARCH arch) {
  if (!cpu_has(CpuFeature::aes)) return true;
  switch (arch) {
    case IMB_ARCH_AVX:
      return !cpu_has(CpuFeature::avx);
    case IMB_ARCH_AVX2:
      return !cpu_has(CpuFeature::avx2) ||
             (IMB_VERSION_NUM >= IMB_VERSION(1, 4, 0) && !cpu_has(CpuFeature::vaes));
    case IMB_ARCH_AVX512:
      return !cpu_has(CpuFeature::avx512) || !cpu_has(CpuFeature::vaes);
    default:
      return false;
  }
}

// Each of these also runs the library's own self-test.
void initialise(Library& library, IMB_ARCH wanted) {
  switch (wanted) {
    case IMB_ARCH_SSE:
      init_mb_mgr_sse(library.manager);
      break;
    case IMB_ARCH_AVX:
      init_mb_mgr_avx(library.manager);
      break;
    case IMB_ARCH_AVX2:
      init_mb_mgr_avx2(library.manager);
      break;
    case IMB_ARCH_AVX512:
      init_mb_mgr_avx512(library.manager);
      break;
    default:
      return;
  }
  library.arch = wanted;
}

std::string start_problem(Library& library, IMB_ARCH wanted) {
  const uint64_t needed = features_needed(wanted);
  if (hidden(wanted) || (library.manager->features & needed) != needed) {
    return "ipsec-mb cannot run on this CPU: it lacks AES-NI or the vector instructions";
  }
  initialise(library, wanted);
  const int error = imb_get_errno(library.manager);
  if (error == 0) return {};
  return concat("ipsec-mb cannot run on this CPU: ", imb_get_strerror(error));
}

Library load_library(IMB_ARCH wanted) {
  Library library;
  library.manager = alloc_mb_mgr(0);
  if (library.manager == nullptr) {
    library.problem = "ipsec-mb could not allocate its manager";
    return library;
  }
  library.problem = start_problem(library, wanted);
  if (!library.problem.empty()) free_mb_mgr(std::exchange(library.manager, nullptr));
  return library;
}

class IpsecMbAead final : public Aead {
 public:
  IpsecMbAead(IMB_MGR* manager, const Key& key) : manager_(manager) {
    IMB_AES256_GCM_PRE(manager_, key.secret().data(), &*schedule_);
  }

 private:
  void do_seal(const Iv& iv, Bytes additional, std::span<const Bytes> plaintext,
               MutableBytes ciphertext, Tag& tag) const override {
    State state;
    uint8_t* out = ciphertext.data();
    if (plaintext.size() == 1) {
      IMB_AES256_GCM_ENC(manager_, &*schedule_, &state.gcm, out, plaintext[0].data(),
                         plaintext[0].size(), iv.data(), additional.data(), additional.size(),
                         tag.data(), tag.size());
      return;
    }
    IMB_AES256_GCM_INIT(manager_, &*schedule_, &state.gcm, iv.data(), additional.data(),
                        additional.size());
    for (const Bytes piece : plaintext) {
      IMB_AES256_GCM_ENC_UPDATE(manager_, &*schedule_, &state.gcm, out, piece.data(), piece.size());
      out += piece.size();
    }
    IMB_AES256_GCM_ENC_FINALIZE(manager_, &*schedule_, &state.gcm, tag.data(), tag.size());
  }

  bool do_open(const Iv& iv, Bytes additional, std::span<const Bytes> ciphertext, const Tag& tag,
               MutableBytes plaintext) const override {
    State state;
    Tag computed;
    uint8_t* out = plaintext.data();
    if (ciphertext.size() == 1) {
      IMB_AES256_GCM_DEC(manager_, &*schedule_, &state.gcm, out, ciphertext[0].data(),
                         ciphertext[0].size(), iv.data(), additional.data(), additional.size(),
                         computed.data(), computed.size());
    } else {
      IMB_AES256_GCM_INIT(manager_, &*schedule_, &state.gcm, iv.data(), additional.data(),
                          additional.size());
      for (const Bytes piece : ciphertext) {
        IMB_AES256_GCM_DEC_UPDATE(manager_, &*schedule_, &state.gcm, out, piece.data(),
                                  piece.size());
        out += piece.size();
      }
      IMB_AES256_GCM_DEC_FINALIZE(manager_, &*schedule_, &state.gcm, computed.data(),
                                  computed.size());
    }
    // The library computes the tag and leaves the comparison to us.
    const bool genuine = constant_time_equal(computed, tag);
    wipe(computed);
    return genuine;
  }

  // Holds the running hash and a keystream block: secret.
  struct State {
    gcm_context_data gcm;
    ~State() { wipe({reinterpret_cast<uint8_t*>(&gcm), sizeof gcm}); }
  };

  IMB_MGR* manager_;
  Secret<gcm_key_data> schedule_;
};

class IpsecMbEngine final : public Engine {
 public:
  explicit IpsecMbEngine(IMB_ARCH wanted) : library_(load_library(wanted)) {}

  std::string_view name() const override { return "ipsec-mb"; }

  std::string version() const override {
    const bool vaes = library_.manager != nullptr && library_.arch == IMB_ARCH_AVX512 &&
                      (library_.manager->features & IMB_FEATURE_VAES) != 0;
    return concat("ipsec-mb ", imb_get_version_str(), " (", arch_name(library_.arch),
                  vaes ? ", VAES)" : ")");
  }

  Status available() const override {
    if (library_.problem.empty()) return {};
    return usage_error(library_.problem);
  }

  std::unique_ptr<Aead> make(const Key& key) const override {
    SEALANE_CHECK(library_.problem.empty(), "engine used on a CPU that cannot run it");
    return std::make_unique<IpsecMbAead>(library_.manager, key);
  }

 private:
  Library library_;
};

// Leaked on purpose: engines outlive every exit handler.
const IpsecMbEngine* best_engine() {
  for (const IMB_ARCH arch : {IMB_ARCH_AVX512, IMB_ARCH_AVX2, IMB_ARCH_AVX}) {
    auto engine = std::make_unique<IpsecMbEngine>(arch);
    if (engine->available()) return engine.release();
  }
  return new IpsecMbEngine(IMB_ARCH_SSE);
}

std::vector<const Engine*> usable_code_paths() {
  std::vector<const Engine*> paths;
  for (const IMB_ARCH arch : {IMB_ARCH_SSE, IMB_ARCH_AVX, IMB_ARCH_AVX2, IMB_ARCH_AVX512}) {
    auto engine = std::make_unique<IpsecMbEngine>(arch);
    if (engine->available()) paths.push_back(engine.release());
  }
  return paths;
}

}  // namespace

const Engine& ipsec_mb_engine() {
  static const Engine& engine = *best_engine();
  return engine;
}

std::span<const Engine* const> ipsec_mb_code_paths() {
  static const auto& paths = *new std::vector<const Engine*>(usable_code_paths());
  return paths;
}

}  // namespace sealane
