#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The .deb packages in a Debian 12 that has nothing else: install, do the main job, install once more over it, purge,
# and look what is left. Needs root and debootstrap; else it says so and ends with 77.
# Usage: debian.sh BUILD_DIR [--without-torch]     without: python3-sealane is left out, with the half GB it pulls in
set -eu
packages=$1/packages
torch=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
ls "$packages"/sealane_*.deb >/dev/null 2>&1 || { echo "no packages: run 'make packages' first"; exit 77; }

scratch=$(mktemp -d)
root=$scratch/root
leave() {
  umount "$root/proc" 2>/dev/null || true
  rm -rf "$scratch"
}
trap leave EXIT

"$here/../../tools/bare_debian.sh" "$root" || exit $?
cp "$packages"/*.deb "$root/root/"
[ "$torch" != --without-torch ] || rm -f "$root"/root/python3-sealane_*.deb
mount -t proc proc "$root/proc"

inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
files() { (cd "$root" && find usr etc opt -not -path '*/doc/*' \( -name '*sealane*' -o -path '*sealane*' \) | sort); }

inside sh -c 'apt-get update -qq && apt-get install -y -q --no-install-recommends /root/*.deb' \
  >"$scratch/install.log" 2>&1 || { tail -20 "$scratch/install.log"; exit 1; }
inside sealane --version
inside sealane doctor >"$scratch/doctor.txt" || true
grep -q 'self-tested' "$scratch/doctor.txt"
inside sealane run --emulate --cc on --policy parallel -- \
  "$(cd "$root" && find usr -name mini_llm | sed 's|^|/|')" >"$scratch/job.txt" ||
  { cat "$scratch/job.txt"; exit 1; }
tail -3 "$scratch/job.txt"
echo "installed: $(files | wc -l) files; the main job ran"

if ls "$root"/root/python3-sealane_*.deb >/dev/null 2>&1; then
  cp "$here/two_ranks.py" "$root/root/"
  inside sealane keygen /root/job.key >/dev/null
  inside python3 /root/two_ranks.py /root/job.key || exit 1
  inside python3 -m sealane --version >/dev/null # the program, by the package's name
else
  echo "python3-sealane: NOT TRIED, it was not made or left out"
fi

inside sh -c 'apt-get install -y -q --reinstall --no-install-recommends /root/*.deb' >"$scratch/again.log" 2>&1 ||
  { tail -20 "$scratch/again.log"; exit 1; }
ours=$(inside dpkg-query -W -f '${Package} ' '*sealane*')
# shellcheck disable=SC2086
inside apt-get purge -y -q $ours >"$scratch/purge.log" 2>&1 ||
  { tail -20 "$scratch/purge.log"; exit 1; }
left=$(files)
[ -z "$left" ] || { printf 'left behind:\n%s\n' "$left"; exit 1; }
echo "purged: nothing is left"
