#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes a wheel, installs it in a fresh environment where there is neither a compiler nor the source, then follows
# docs/pytorch.md with torchrun from there.
# Usage: package.sh PYTHON BUILD_DIR
set -eu
python=$1
build=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
# Somebody else's job may have torchrun's own port: here, somebody has it.
"$python" -c 'import socket, time; kept = socket.socket(); kept.bind(("", 29500)); kept.listen(); time.sleep(600)' \
  2>/dev/null &
neighbour=$!
trap 'kill "$neighbour" 2>/dev/null || true; rm -rf "$scratch"' EXIT

# torchrun looks after its processes every five seconds unless told otherwise.
torchrun="venv/bin/python -m torch.distributed.run --rdzv_backend c10d --rdzv_endpoint localhost:0 \
  --monitor_interval 0.1 -r 1 -t 1 --nproc_per_node 2"

# A copy, because setuptools leaves its traces in the source.
mkdir "$scratch/source"
cp -r "$root/pyproject.toml" "$root/setup.py" "$root/python" "$root/docs" "$scratch/source"
"$python" -m venv --system-site-packages --without-pip "$scratch/venv"
cd "$scratch"
SEALANE_BUILD=$build "$python" -m pip wheel --quiet --no-build-isolation --no-index --no-deps --wheel-dir wheel ./source
rm -rf source
export CC=/bin/false CXX=/bin/false
"$python" -m pip --python venv/bin/python install --quiet --no-index --no-deps wheel/*.whl
venv/bin/python -c 'import sealane, sealane.torch; assert sealane.__version__ == sealane.torch.__version__'

venv/bin/sealane keygen job.key
SEALANE_KEY_FILE=job.key $torchrun "$root/examples/ddp/train.py" 2>/dev/null | tee out
grep -Eq 'loss [0-9.]+; sealed [1-9][0-9]* messages' out

# Without a key the program says what to do.
if $torchrun "$root/examples/ddp/train.py" >without 2>&1; then
  echo "trained without a key" >&2
  exit 1
fi
grep -q 'sealane keygen FILE' without
