/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The kernel of plain.cu for the emulated GPU. */

#include <sealane_emu.h>

static void scale(const sealane_emu_launch* launch) {
  const uint64_t values = *(const uint64_t*)launch->arguments[0];
  const float by = *(const float*)launch->arguments[1];
  const int count = *(const int*)launch->arguments[2];
  const uint64_t symbol = launch->symbol(launch, "offset", NULL);
  const int* offset = launch->memory(launch, symbol, sizeof(int));
  float* x = launch->memory(launch, values, (size_t)count * sizeof(float));
  if (x == NULL || offset == NULL) return;
  for (int i = 0; i < count; ++i) x[i] = x[i] * by + (float)*offset;
  launch->charge(launch, 2.0 * count, 8.0 * count);
}

void sealane_emu_kernels(sealane_emu_register_fn add) {
  static const size_t sizes[] = {sizeof(uint64_t), sizeof(float), sizeof(int)};
  const sealane_emu_kernel kernel = {sizeof kernel, "_Z5scalePffi", scale, sizes, 3};
  add(&kernel);
}
