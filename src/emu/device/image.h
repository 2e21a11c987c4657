// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0
//
// Images of device code, as programs carry them: PTX text, cubins, fat binaries of either,
// compressed or not. What can run here is the PTX in them.
//
// Stateless; safe from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sealane::emu {

struct PtxText {
  std::string text;
  int capability = 0;  // 90 for compute_90; 0: the text alone knows
};

struct Image {
  // Parts are linked; of each, the PTX for several capabilities.
  std::vector<std::vector<PtxText>> parts;
  std::string names;          // what may be searched for names without PTX; empty: nothing
  bool machine_code = false;  // has some
  bool known = false;         // a driver would take it
};

// `image` points to whatever cuModuleLoadData() was given; its size is in it, or a zero ends it. An
// error says what is wrong with an image of a known kind.
Result<Image> read_image(const void* image);

// The fat binaries in a host object or an archive of such.
Result<Image> read_object(std::string_view bytes);

// The best PTX of each part for a GPU of this capability (90: 9.0); a part that has none for it (as
// the toolkit's device runtime, which is linked to everything) is missed by who needs it. Empty:
// there is no PTX. An error: all there is is for newer GPUs.
Result<std::vector<std::string>> choose_ptx(Image image, int capability);

}  // namespace sealane::emu
