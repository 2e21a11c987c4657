#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# The PyTorch backend with a PyTorch 2 from PyPI: installs it, builds the backend for it, runs its tests, makes and
# tries a wheel, trains with Accelerate, Transformers and Lightning (from PyPI too), and runs PyTorch's own tests of a
# backend.
# Usage: [TORCH=VERSION] torch2.sh [install|build|core|test|wheel|frameworks|conformance]...   (by default all; "core" is
# the part of "test" that a machine with little time runs: every collective beside Gloo, and what PyTorch 2 adds)
# The newest is what is pinned below, in build/torch2. Another version gets a build of its own, in build/torch-VERSION,
# and by default no wheel (not tried there), frameworks and conformance (whose versions go with the newest), nor machines
# that come and go (tests/torch/rescale_test.py): "oldest" is the first 2.x.
# Where PyPI cannot be reached it says so and exits 3.
set -eu
cd "$(dirname "$0")/.."
newest=2.15.0
oldest=2.0.0
version=${TORCH:-$newest}
[ "$version" != oldest ] || version=$oldest
if [ "$version" = "$newest" ]; then
  place=build/torch2 cmake=build package=build/torch2/python
  steps="install build test wheel frameworks conformance"
  tests="calls collectives ddp failure threads torch2 rescale"
else
  place=build/torch-$version cmake=$place/cmake package=$place/cmake/python
  steps="install build test"
  tests="calls collectives ddp failure threads torch2"
fi
venv=$place/venv
python=$venv/bin/python
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

say() { echo "sealane: $*" >&2; }

# What goes with it: PyTorch before 2.3 was built for NumPy 1.
numpy_for() {
  case $1 in
    2.[012].*) echo numpy==1.26.4 ;;
    *) echo numpy==2.4.6 ;;
  esac
}

install_torch() {
  installed=$("$python" -c 'import torch; print(torch.__version__.split("+")[0])' 2>/dev/null || true)
  [ "$installed" != "$version" ] || return 0
  mkdir -p "$place"
  say "installing PyTorch $version from PyPI, 5 GB with what it brings along"
  "${SEALANE_TORCH_BASE:-/usr/bin/python3}" -m venv "$venv"
  log=$place/pip.log
  "$python" -m pip install --disable-pip-version-check --timeout 15 --retries 1 \
    "torch==$version" "$(numpy_for "$version")" setuptools==84.2.1 wheel==0.48.0 >"$log" 2>&1 || {
    say "PyTorch $version could not be installed ($log): the backend is not tested with it"
    exit 3
  }
}

build_backend() {
  if [ "$cmake" = build ]; then
    cmake -S . -B build -DSEALANE_TORCH2_PYTHON="$PWD/$python" >/dev/null
    cmake --build build -j "$(nproc)" --target sealane-torch2
    return
  fi
  old_abi=$("$python" -c 'import torch; print("OFF" if torch._C._GLIBCXX_USE_CXX11_ABI else "ON")')
  cmake -S . -B "$cmake" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_UNITY_BUILD=ON \
    -DSEALANE_PYTHON="$PWD/$python" -DSEALANE_OLD_ABI="$old_abi" >/dev/null
  cmake --build "$cmake" -j "$(nproc)" --target sealane-torch
}

# run_tests NAME...
run_tests() {
  installed=$("$python" -c 'import torch; print(torch.__version__)')
  for name in "$@"; do
    say "PyTorch $installed: tests/torch/${name}_test.py"
    (cd tests/torch && PYTHONPATH=../../$package "../../$python" -W ignore "${name}_test.py") || {
      say "tests/torch/${name}_test.py failed with PyTorch $installed"
      exit 1
    }
  done
}

# shellcheck disable=SC2086
run_all_tests() { run_tests $tests; }

make_wheel() {
  cmake --build "$cmake" -j "$(nproc)" --target sealane sealane-program
  tools/wheel.sh "$python" "$cmake"
  tests/torch/wheel.sh "$PWD/$python" "$(ls "$PWD/$cmake"/wheel/*.whl)" || {
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
  PYTHONPATH=$PWD/$package tests/torch/frameworks.sh "$PWD/$python"
}

run_conformance() {
  "$python" -m pip install --quiet --disable-pip-version-check expecttest || {
    say "what PyTorch's own tests need could not be installed: not run"
    exit 3
  }
  say "PyTorch's own tests of a backend: tests/torch/conformance.py"
  PYTHONPATH=$PWD/$package "$python" -W ignore tests/torch/conformance.py >"$place/conformance.txt" || {
    cat "$place/conformance.txt" >&2
    exit 1
  }
}

for step in ${*:-$steps}; do
  case $step in
    install) install_torch ;;
    build) build_backend ;;
    core) run_tests collectives torch2 ;;
    test) run_all_tests ;;
    wheel) make_wheel ;;
    frameworks) run_frameworks ;;
    conformance) run_conformance ;;
    *)
      say "torch2.sh [install|build|core|test|wheel|frameworks|conformance]..."
      exit 2
      ;;
  esac
done
