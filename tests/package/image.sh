#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The OCI image for CI: is it an image, does it say what it is, and do the commands of docs/recipes/ci.md run in it?
# By podman where it can start a container, else in a chroot (which tries the files, not the isolation). Needs root.
# Usage: image.sh BUILD_DIR
set -eu
image=$(find "$1/packages" -name 'sealane-ci-*.oci.tar' 2>/dev/null | head -1)
[ -n "$image" ] || { echo "no image: run 'tools/image.sh $1' first"; exit 77; }
command -v buildah >/dev/null || { echo "the image was NOT tried: no buildah here"; exit 77; }
container=$(buildah from "oci-archive:$image")
trap 'buildah rm "$container" >/dev/null' EXIT
buildah inspect --format '{{.OCIv1.Architecture}} {{.OCIv1.OS}}' "$container" | grep -q '^[a-z0-9]* linux$'
root=$(buildah mount "$container")
for left in root/.ssh etc/resolv.conf packages; do
  [ ! -s "$root/$left" ] || { echo "the image has /$left of the machine that made it"; exit 1; }
done
buildah umount "$container" >/dev/null

how=podman
podman run --rm --network none "oci-archive:$image" true 2>/dev/null || how=chroot
inside() {
  case $how in
    podman) podman run --rm --network none "oci-archive:$image" "$@" ;;
    chroot) buildah run --isolation chroot "$container" -- "$@" ;;
  esac
}
inside sealane --version | grep 'installed: runtime emulator'
program=/usr/lib/sealane/examples/mini_llm
inside sealane run --emulate --cc off -- $program >/dev/null
inside sealane run --emulate --cc on -- $program >/dev/null
inside sealane run --emulate --cc on --policy sealane -- $program >/dev/null
if inside sealane run --emulate --cc on --adversary flip@100 -- $program >/dev/null 2>&1; then
  echo "a flipped bit went unnoticed"
  exit 1
fi
echo "image: tried by $how, $(du -h "$image" | cut -f1)"
