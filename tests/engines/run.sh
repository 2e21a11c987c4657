#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# One of these tests on the emulated GPU, with the Python of `make engines`.
# Usage: run.sh BUILD TEST.py CC GPUS [FLAG OF sealane run]...
set -eu
build=$1 test=$2 cc=$3 gpus=$4
shift 4
python=$build/${ENGINES_PLACE:-engines}/venv/bin/python
if ! "$python" -c '' 2>/dev/null; then
  echo "skipped: no $python: 'make engines' installs PyTorch and the engines, 'tools/engines.sh vllm build' vLLM"
  exit 77
fi
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=2 ENGINES_CC="$cc" ENGINES_GPUS="$gpus"
# The engines' programs, behind this directory, whose `models` are smaller.
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$PWD/../../examples/engines"
# What torch.compile made may be used again.
export TORCHINDUCTOR_CACHE_DIR="$build/engines/cache/inductor" TRITON_CACHE_DIR="$build/engines/cache/triton"
exec "$build/bin/sealane" run --emulate --cc "$cc" --gpus "$gpus" --memory 2G --compute-capability 12.0 "$@" -- \
  "$python" -W ignore "$test"
