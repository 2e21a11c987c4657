/* SPDX-FileCopyrightText: The Sealane authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program in C that knows the public header and nothing else.
 */
#include <sealane/sealane.h>
#include <stdio.h>

int main(void) {
  float values[] = {1, 2, 3};
  sealane_comm_options options;
  sealane_comm* comm = NULL;
  sealane_comm_options_init(&options);
  if (sealane_abi_version() != SEALANE_ABI_VERSION ||
      sealane_comm_create(&options, &comm) != SEALANE_OK ||
      sealane_all_reduce(comm, values, values, 3, SEALANE_FLOAT32, SEALANE_SUM) != SEALANE_OK) {
    fprintf(stderr, "sum: %s\n", sealane_last_error());
    return 1;
  }
  printf("rank %d of %d: %g\n", sealane_comm_rank(comm), sealane_comm_size(comm), values[2]);
  sealane_comm_destroy(comm);
  return 0;
}
