#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Does the wheel install where there is no compiler and no Sealane, and say clearly which PyTorch it is for?
# Usage: wheel.sh PYTHON WHEEL   The interpreter has the PyTorch that the wheel was built for.
set -eu
python=$1
wheel=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "wheel.sh: $*" >&2
  exit 1
}

# A fresh environment that sees the other one's PyTorch, which is too large to copy.
base=$("$python" -c 'import sys; print(sys._base_executable)')
"$base" -m venv "$scratch/venv"
here=$(echo "$scratch"/venv/lib/python3*/site-packages)
"$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' >"$here/torch.pth"
cd "$scratch"
export CC=/bin/false CXX=/bin/false PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
venv/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps "$wheel"

venv/bin/python -c 'import sealane, sealane.torch; assert sealane.__version__ == sealane.torch.__version__ == "0.1.0"'
venv/bin/sealane --version | grep -q 0.1.0
test -f "$here/sealane/py.typed" && test -f "$here/sealane/_torch.pyi" || fail "no type stubs"
for needed in libcrypto libssl libIPSec_MB; do
  ldd "$here/sealane/libsealane.so.0" | grep "$needed" | grep -q sealane.libs || fail "$needed is not the wheel's"
done

venv/bin/sealane keygen job.key
SEALANE_KEY_FILE=job.key venv/bin/python -m torch.distributed.run --standalone --monitor_interval 0.1 \
  --nproc_per_node 2 "$root/examples/ddp/train.py" 2>/dev/null | tee out
grep -Eq 'loss [0-9.]+; sealed [1-9][0-9]* messages' out

# Another PyTorch than the one it was built for: one line, no crash.
sed -i 's/^TORCH = .*/TORCH = "2.1.0"/' "$here/sealane/_build.py"
if venv/bin/python -c 'import sealane.torch' 2>mismatch; then fail "another PyTorch was accepted"; fi
tail -1 mismatch | grep -q 'ImportError: sealane: built for PyTorch 2.1.0, but this is'
