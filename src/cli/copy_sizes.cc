// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/copy_sizes.h"

#include <fstream>

#include "workload/trace.h"

namespace sealane::cli {

Result<bench::CopySizes> sizes_of_trace(const std::string& file) {
  std::ifstream in(file);
  workload::TraceReader reader(in, file);
  bench::CopySizes sizes;
  while (true) {
    const auto operation = reader.next();
    if (!operation) return operation.error();
    if (!*operation) return sizes;
    const auto* copy = std::get_if<workload::Copy>(&(*operation)->action);
    if (copy == nullptr) continue;
    sizes.add(copy->direction == Direction::to_device, copy->memory == MemoryKind::pageable,
              copy->host.bytes);
  }
}

}  // namespace sealane::cli
