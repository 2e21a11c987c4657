// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands in front of another fabric and passes everything on. Who injects faults derives from it
// and overrides what goes wrong. One thread at a time, as any fabric.
#pragma once

#include <memory>
#include <utility>

#include "transport/fabric.h"

namespace sealane {

class ForwardingFabric : public Fabric {
 public:
  explicit ForwardingFabric(std::unique_ptr<Fabric> inner) : inner_(std::move(inner)) {}

  bool writable(uint32_t wire) override { return inner_->writable(wire); }
  MutableBytes slot(uint32_t wire) override { return inner_->slot(wire); }
  void commit(uint32_t wire, size_t bytes) override { inner_->commit(wire, bytes); }
  bool readable(uint32_t wire) override { return inner_->readable(wire); }
  Bytes front(uint32_t wire) override { return inner_->front(wire); }
  void pop(uint32_t wire) override { inner_->pop(wire); }
  Duration patience() override { return inner_->patience(); }
  void prepare_wait() override { inner_->prepare_wait(); }
  void wait(Duration at_most) override { inner_->wait(at_most); }
  bool flush() override { return inner_->flush(); }
  bool lost(uint32_t peer) const override { return inner_->lost(peer); }
  bool behind(uint32_t peer) const override { return inner_->behind(peer); }
  size_t memory_bytes() const override { return inner_->memory_bytes(); }

 protected:
  Fabric& inner() { return *inner_; }

 private:
  std::unique_ptr<Fabric> inner_;
};

}  // namespace sealane
