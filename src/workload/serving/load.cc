// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// A model is loaded: tensor by tensor, from pageable memory (a mapped file), each copy waited for.

#include <cmath>

#include "base/try.h"
#include "workload/serving/engine.h"
#include "workload/serving/layers.h"

namespace sealane::workload {
namespace {

class Load final : public Engine {
 public:
  Load(const Model& model, double read_gb_per_s) : model_(model), read_gb_per_s_(read_gb_per_s) {}

 private:
  void set_up() override {
    file_ = host_memory(model_.bytes(), MemoryKind::pageable);
    device_ = device_memory(model_.bytes());
  }

  // A layer at a time, then what is outside the layers.
  bool step(Instant now) override {
    if (layer_ == 0) began_ = now;
    if (layer_ > model_.layers) {
      achieved_.time = now - began_;
      achieved_.units = static_cast<double>(model_.bytes()) / 1e9;
      return false;
    }
    if (layer_ == model_.layers) {
      tensor(model_.embedding_bytes());
    } else {
      for (const uint64_t bytes : layer_tensors(model_)) tensor(bytes);
    }
    ++layer_;
    return true;
  }

  void tensor(uint64_t bytes) {
    if (read_gb_per_s_ > 0) {
      think(Duration(std::llround(static_cast<double>(bytes) / read_gb_per_s_)));
    }
    copy_in(kCompute, {file_.address + loaded_, bytes}, device_ + loaded_, MemoryKind::pageable,
            CallKind::sync);
    loaded_ += bytes;
  }

  Model model_;
  double read_gb_per_s_;
  Range file_;
  uint64_t device_ = 0;
  uint64_t loaded_ = 0;
  uint32_t layer_ = 0;
  Instant began_{};
};

}  // namespace

Result<std::unique_ptr<Feed>> make_load(const Model& model, const Roofline& gpu,
                                        const ServingOptions& options) {
  SEALANE_TRY(must_fit_host(model, model.bytes(), gpu));
  SEALANE_TRY(must_fit_gpu(model.name, model.bytes(), gpu));
  return std::unique_ptr<Feed>(std::make_unique<Load>(model, options.read_gb_per_s.value_or(0)));
}

}  // namespace sealane::workload
