# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# To be sourced by tests that read what a library brings into a process. They end with `exit $bad`.
bad=0
complain() {
  echo "$1"
  bad=1
}

# check_needed LIBRARY [PATTERN]: it needs nothing but libc, and what the extended regular expression fits.
check_needed() {
  for needed in $(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $needed in
      libc.so.* | libm.so.* | ld-linux* | libdl.so.* | libpthread.so.*) ;;
      *) echo "$needed" | grep -Eqx "${2:-}" || complain "needs $needed" ;;
    esac
  done
}
