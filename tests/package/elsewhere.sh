#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The packages for those without Debian: the tarball, unpacked where the directory's name has a space, and the .rpm
# files, installed below a root of their own, used, and taken away again. Both run on this machine's libraries, from
# nothing but what was unpacked. Ends with 77 if there are no packages. Usage: elsewhere.sh BUILD_DIR
set -eu
packages=$(cd "$1/packages" 2>/dev/null && pwd) || { echo "no packages: run 'make packages' first"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" # nothing may be found because of where we are

# main_job PREFIX: a CUDA program on the emulated GPU, in CC mode, under the runtime.
main_job() {
  "$1/bin/sealane" --version | grep -q 'installed: runtime emulator' || { "$1/bin/sealane" --version; exit 1; }
  "$1/bin/sealane" run --emulate --cc on --policy parallel --stats "$scratch/stats.json" -- \
    "$1/lib/sealane/examples/mini_llm" >"$scratch/job.txt" 2>&1 || { cat "$scratch/job.txt"; exit 1; }
  grep -q 'sealane: active: .*parallel' "$scratch/job.txt"
  grep -q '"carried_copies"' "$scratch/stats.json"
  "$1/bin/sealane" keygen "$scratch/key" >/dev/null && rm "$scratch/key"
  test -f "$1/share/man/man1/sealane-run.1.gz"
  test -f "$1/share/sealane/platforms/h100-tdx.toml"
}

echo "== tarball"
mkdir "$scratch/a place"
tar -C "$scratch/a place" -xzf "$packages"/sealane-*.tar.gz
tree=$(find "$scratch/a place" -mindepth 1 -maxdepth 1)
main_job "$tree"
# Who links the library finds it there, by pkg-config and by CMake's files.
cat >"$scratch/consumer.cc" <<'END'
#include <sealane/version.h>
int main() { return sealane::version().empty(); }
END
PKG_CONFIG_PATH="$tree/lib/pkgconfig" pkg-config --cflags --libs sealane >"$scratch/flags"
eval "c++ -std=c++20 '$scratch/consumer.cc' $(cat "$scratch/flags") -o '$scratch/consumer'"
LD_LIBRARY_PATH="$tree/lib" "$scratch/consumer"
# A second time in another place: nothing remembers the first.
mv "$scratch/a place" "$scratch/moved"
main_job "$scratch/moved/${tree##*/}"
echo "tarball: unpacked below a name with a space, used, moved, used again"

echo "== rpm"
if ! command -v rpm >/dev/null || ! ls "$packages"/*.rpm >/dev/null 2>&1; then
  echo "rpm: NOT TRIED, there is no rpm here or no .rpm was made"
  exit 0
fi
for file in "$packages"/*.rpm; do rpm -qp --requires "$file"; done >"$scratch/requires"
grep -q '^libcrypto.so.3' "$scratch/requires" || { cat "$scratch/requires"; exit 1; }
root=$scratch/root
mkdir -p "$root"
# This machine's libraries are Debian's: no database of rpm's knows them.
rpm --root "$root" --nodeps --noscripts --nosignature -i "$packages"/*.rpm
rpm --root "$root" --nodeps -Va || { echo "what was installed is not what was packed"; exit 1; }
main_job "$root/usr"
installed=$(rpm --root "$root" -qa | wc -l)
rpm --root "$root" -qa | xargs rpm --root "$root" --nodeps --noscripts -e
left=$(find "$root" -name '*sealane*')
[ -z "$left" ] || { printf 'left behind:\n%s\n' "$left"; exit 1; }
echo "rpm: $installed packages installed, used, removed; nothing is left"
