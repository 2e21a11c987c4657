#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Real engines for the emulated GPU: the pinned PyTorch, Transformers, Accelerate, PEFT and FlexGen from PyPI in
# build/engines/venv, and PyTorch's operators built for it (adapters/aten). vLLM brings a PyTorch of its own and has its
# own place, build/engines-vllm.
# Usage: engines.sh [size|install|vllm|build|core|test]...   (by default all but vllm, which adds 5 GB to download, and
# core: every kind of copy, computing, and each engine, under one policy)
# What is there already is not fetched again: an interrupted run goes on where it was. Where PyPI cannot be reached it
# says so and exits 3. ENGINES_TORCH=VERSION takes another PyTorch.
set -eu
cd "$(dirname "$0")/.."
torch=${ENGINES_TORCH:-2.15.0}
engines="transformers==5.22.2 accelerate==1.15.0 peft==0.21.2 flexgen==0.1.8"
with="numpy nvidia-ml-py==13.615.71"
vllm=0.33.0
venv=build/engines/venv
vllm_venv=build/engines-vllm/venv
python=$venv/bin/python
log=build/engines/pip.log
export PYTHONDONTWRITEBYTECODE=1

say() { echo "sealane: $*" >&2; }

has() {
  # shellcheck disable=SC2086
  "$python" - "torch==$torch" $engines $with 2>/dev/null <<'END'
import importlib.metadata as installed
import sys
for wanted in sys.argv[1:]:
    name, _, version = wanted.partition("==")
    got = installed.version(name)
    if version and got.split("+")[0] != version:
        sys.exit(1)
END
}

print_size() {
  if has; then
    say "engines: all is installed in $venv"
  else
    say "engines: PyTorch $torch and what it brings along: 3 GB to download, 5.7 GB in $venv"
  fi
}

install_engines() {
  if has; then return; fi
  mkdir -p build/engines
  test -x "$python" || "${SEALANE_ENGINES_BASE:-python3}" -m venv "$venv"
  # One after the other, and pip keeps what it fetched: the next run has the less to do.
  for group in "torch==$torch" "$engines $with"; do
    # shellcheck disable=SC2086
    "$python" -m pip install --disable-pip-version-check --timeout 30 --retries 2 $group >"$log" 2>&1 || {
      say "$group could not be installed ($log): the engines are not tested"
      exit 3
    }
  done
}

has_vllm() {
  "$vllm_venv/bin/python" -c "import importlib.metadata as m
m.version('torch')
exit(m.version('vllm') != '$vllm')" 2>/dev/null
}

# vLLM with what it requires, but for the newest certificates, which may be newer than those PyPI has.
install_vllm() {
  if has_vllm; then return; fi
  vllm_python=$vllm_venv/bin/python
  say "engines: vLLM $vllm and what it brings along: 5 GB to download, 9.4 GB in $vllm_venv"
  test -x "$vllm_python" || "${SEALANE_ENGINES_BASE:-python3}" -m venv "$vllm_venv"
  required=build/engines-vllm/required.txt
  pip="$vllm_python -m pip install --disable-pip-version-check --timeout 30 --retries 2"
  {
    $pip --no-deps --no-compile "vllm==$vllm" &&
      "$vllm_python" -c "import importlib.metadata as m
for one in m.requires('vllm'): print('' if 'extra ==' in one else 'certifi' if one.startswith('certifi') else one)" \
        >"$required" && $pip -r "$required"
  } >build/engines-vllm/pip.log 2>&1 || {
    say "vLLM could not be installed (build/engines-vllm/pip.log): it is not tested"
    "$vllm_python" -m pip uninstall -q -y vllm >/dev/null 2>&1 || true
    exit 3
  }
}

# PyTorch's operators, and our backend for the same PyTorch unless `make torch2` has it already.
build_operators() {
  backend=build/torch2/venv/bin/python
  test -x "$backend" || backend=$python
  pythons=$PWD/$python
  if has_vllm; then pythons="$pythons;$PWD/$vllm_venv/bin/python"; fi
  cmake -S . -B build -DSEALANE_ENGINES_PYTHON="$pythons" -DSEALANE_TORCH2_PYTHON="$PWD/$backend" >/dev/null
  cmake --build build -j "$(nproc)" --target sealane-aten sealane-torch2 sealane-program sealane-preload sealane-emu-all
}

run_tests() {
  ctest --test-dir build -R "$1" --output-on-failure
}

for step in ${*:-size install build test}; do
  case $step in
    size) print_size ;;
    install) install_engines ;;
    vllm) install_vllm ;;
    build) build_operators ;;
    core) run_tests '^engines\.(copies|compute|transformers|peft|flexgen|programs)\.sealane$' ;;
    test) run_tests '^engines\.' ;;
    *)
      say "engines.sh [size|install|vllm|build|core|test]..."
      exit 2
      ;;
  esac
done
