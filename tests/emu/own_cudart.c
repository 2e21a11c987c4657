/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA runtime that a program brings along, as PyTorch's wheels do. It finds no device. */

int cudaGetDeviceCount(int* count);

int cudaGetDeviceCount(int* count) {
  *count = 0;
  return 801;
}
