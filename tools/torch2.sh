#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The PyTorch backend with a PyTorch of today: installs the pinned one from PyPI into build/torch2/venv, builds the
# backend for it, runs its tests, makes and tries a wheel, trains with Accelerate, Transformers and Lightning (from PyPI
# too), and runs PyTorch's own tests of a backend.
# Usage: torch2.sh [install|build|test|wheel|frameworks|conformance]...   (by default all)
# Where PyPI cannot be reached it says so and exits 3. SEALANE_TORCH2=VERSION takes another one.
set -eu
cd "$(dirname "$0")/.."
pinned=${SEALANE_TORCH2:-2.15.0}
venv=build/torch2/venv
python=$venv/bin/python
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

say() { echo "sealane: $*" >&2; }

install_torch() {
  if [ "$("$python" -c 'import torch; print(torch.__version__.split("+")[0])' 2>/dev/null)" = "$pinned" ]; then return; fi
  mkdir -p build/torch2
  say "installing PyTorch $pinned from PyPI, 5 GB with what it brings along"
  "${SEALANE_TORCH2_BASE:-/usr/bin/python3}" -m venv "$venv"
  log=build/torch2/pip.log
  "$python" -m pip install --disable-pip-version-check --timeout 15 --retries 1 \
    "torch==$pinned" numpy setuptools wheel >"$log" 2>&1 || {
    say "PyTorch $pinned could not be installed ($log): the backend is not tested with it"
    exit 3
  }
}

build_backend() {
  cmake -S . -B build -DSEALANE_TORCH2_PYTHON="$PWD/$python" >/dev/null
  cmake --build build -j "$(nproc)" --target sealane-torch2
}

run_tests() {
  version=$("$python" -c 'import torch; print(torch.__version__)')
  for name in collectives ddp failure torch2; do
    say "PyTorch $version: tests/torch/${name}_test.py"
    (cd tests/torch && PYTHONPATH=../../build/torch2/python "../../$python" -W ignore "${name}_test.py") || {
      say "tests/torch/${name}_test.py failed with PyTorch $version"
      exit 1
    }
  done
}

make_wheel() {
  cmake --build build -j "$(nproc)" --target sealane sealane-program
  tools/wheel.sh "$python" build
  tests/torch/wheel.sh "$PWD/$python" "$(ls "$PWD"/build/wheel/*.whl)" || {
    say "the wheel does not work: tests/torch/wheel.sh"
    exit 1
  }
}

run_frameworks() {
  "$python" -m pip install --quiet --disable-pip-version-check accelerate==1.15.0 transformers==5.22.2 \
    lightning==2.6.6 || {
    say "Accelerate, Transformers and Lightning could not be installed: not tested with them"
    exit 3
  }
  PYTHONPATH=$PWD/build/torch2/python tests/torch/frameworks.sh "$PWD/$python"
}

run_conformance() {
  "$python" -m pip install --quiet --disable-pip-version-check expecttest || {
    say "what PyTorch's own tests need could not be installed: not run"
    exit 3
  }
  say "PyTorch's own tests of a backend: tests/torch/conformance.py"
  PYTHONPATH=$PWD/build/torch2/python "$python" -W ignore tests/torch/conformance.py >build/torch2/conformance.txt || {
    cat build/torch2/conformance.txt >&2
    exit 1
  }
}

for step in ${*:-install build test wheel frameworks conformance}; do
  case $step in
    install) install_torch ;;
    build) build_backend ;;
    test) run_tests ;;
    wheel) make_wheel ;;
    frameworks) run_frameworks ;;
    conformance) run_conformance ;;
    *)
      say "torch2.sh [install|build|test|wheel|frameworks|conformance]..."
      exit 2
      ;;
  esac
done
