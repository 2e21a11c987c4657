#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# An OCI image for CI without a GPU: Debian 12, the program, the runtime and the emulated GPU. Made by buildah, which
# needs no daemon, from the .deb packages of BUILD_DIR and a bare Debian. Needs root. Usage: image.sh BUILD_DIR
#   the image    BUILD_DIR/packages/sealane-ci-VERSION-ARCHITECTURE.oci.tar
#   to try it    tests/package/image.sh BUILD_DIR
#   to use it    podman load -i FILE, docker load -i FILE, skopeo copy oci-archive:FILE docker://...
set -eu
cd "$(dirname "$0")/.."
packages=$1/packages
command -v buildah >/dev/null || { echo "no buildah here: no image made"; exit 77; }
ls "$packages"/sealane_*.deb >/dev/null 2>&1 || { echo "no packages: run 'make packages' first"; exit 77; }
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$1/CMakeCache.txt")
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
made=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
file=$packages/sealane-ci-$version-$(dpkg --print-architecture).oci.tar

container=$(buildah from scratch)
leave() {
  umount "$root/proc" 2>/dev/null || true
  buildah rm "$container" >/dev/null
}
root=$(buildah mount "$container")
trap leave EXIT
tools/bare_debian.sh "$root"
settings=$(cd /etc/apt/apt.conf.d && find . -type f) # this machine's: they help here and do not stay

mkdir "$root/packages"
cp "$packages"/sealane_*.deb "$packages"/sealane-emulator_*.deb "$packages"/libsealane0_*.deb "$root/packages/"
mount -t proc proc "$root/proc"
log=$(mktemp)
chroot "$root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c \
  'apt-get update -qq && apt-get install -y -q --no-install-recommends /packages/*.deb liblz4-1 libzstd1 ca-certificates &&
   apt-get clean' >"$log" 2>&1 || { tail -20 "$log"; exit 1; }
rm -f "$log"
umount "$root/proc"

# What is of this machine, of this hour, or of no use.
(cd "$root/etc/apt/apt.conf.d" && echo "$settings" | xargs rm -f)
standard=$(sed -n 's/^DEF_MIRROR="\(.*\)"/\1/p' "$(command -v debootstrap)")
echo "deb $standard bookworm main" >"$root/etc/apt/sources.list"
rm -rf "$root/packages" "$root/etc/resolv.conf" "$root/etc/hostname" "$root"/var/lib/apt/lists/* "$root"/var/log/* \
  "$root"/var/cache/* "$root"/tmp/* "$root"/usr/share/doc/*/changelog*
: >"$root/etc/machine-id"

buildah config --created-by tools/image.sh --cmd bash --workingdir /work --env LC_ALL=C.UTF-8 \
  --annotation org.opencontainers.image.title=sealane-ci \
  --annotation "org.opencontainers.image.version=$version" --annotation "org.opencontainers.image.revision=$commit" \
  --annotation org.opencontainers.image.licenses=Apache-2.0 \
  --annotation "org.opencontainers.image.description=CUDA programs on an emulated confidential GPU; it protects nothing" \
  "$container"
rm -f "$file"
buildah commit --quiet --format oci --timestamp "$made" "$container" "oci-archive:$file:sealane-ci:$version" >/dev/null
ls -l "$file"
