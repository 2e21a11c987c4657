#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch's engines on the emulated GPU, as files for docs/results/ and tests/traces/. Needs `make engines`.
#   tools/pytorch_results.sh         > docs/results/engines-pytorch-NAME.txt     every engine and policy, one round
#   tools/pytorch_results.sh rounds ENGINE                                       one alone, as often as 7 minutes allow
#   tools/pytorch_results.sh observe > docs/results/engines-pytorch-observe.txt  what --observe says; 3 minutes
#   tools/pytorch_results.sh hits    > docs/results/engines-pytorch-hits.txt     how often the traces' copies are foreseen
#   tools/pytorch_results.sh record                                              writes tests/traces/*.trace; 5 minutes
# On a quiet machine; `policies --dilation 150` and the like passes flags on. SEALANE_BIN names the program
# (build/bin/sealane), PLATFORM the machine that is modelled (h100-tdx), SECONDS_EACH how long `rounds` may take (400).
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/results_header.sh
. tools/results_header.sh
bin=${SEALANE_BIN:-build/bin/sealane}
platform=${PLATFORM:-h100-tdx}
python=$(dirname "$bin")/../engines/venv/bin/python
programs=examples/engines
emulated="--emulate --memory 2G --compute-capability 12.0 --platform $platform"
traces=tests/traces
export PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1

show() {
  echo
  echo "\$ $*"
  quietly "$@"
}

timed() {
  began=$(date +%s)
  show "$@"
  echo
  echo "took $(($(date +%s) - began)) s"
}

# What an engine does on the emulated GPU, small.
small() {
  command=$1
  engine=$2
  shift 2
  # shellcheck disable=SC2086
  "$bin" "$command" "$@" $emulated -- "$python" -W ignore "$programs/run.py" "$engine" --small
}

what=${1:-policies}
if [ $# -gt 0 ]; then shift; fi
case $what in
  policies)
    results_header "PyTorch's engines, MEASURED by tools/pytorch_results.sh${*:+ policies $*}" "$bin"
    timed "$bin" bench engines --platform "$platform" --quick "$@"
    ;;
  rounds)
    results_header "PyTorch's engines, MEASURED by tools/pytorch_results.sh rounds $*" "$bin"
    engine=$1
    shift
    timed "$bin" bench engines --platform "$platform" --engines "$engine" --quick --seconds "${SECONDS_EACH:-400}" "$@"
    ;;
  observe)
    results_header "PyTorch's engines, observed by tools/pytorch_results.sh observe" "$bin"
    for engine in transformers transformers-kv peft flexgen; do
      printf '\n$ %s\n' "sealane run --observe $emulated -- python $programs/run.py $engine --small"
      { small run "$engine" --observe >/dev/null; } 2>&1
    done
    ;;
  record)
    mkdir -p "$traces"
    for engine in transformers transformers-map transformers-kv peft flexgen flexgen-kv staged loader; do
      # Slowly, so that this machine's own pace is not in the times of launches.
      small record "$engine" -o "$traces/$engine.trace" --cc off --dilation 200 >/dev/null 2>&1
    done
    ;;
  hits)
    results_header "Recorded engines, SIMULATED by tools/pytorch_results.sh hits" "$bin"
    show "$bin" sim --hits --platform "$platform" "$traces"/*.trace
    ;;
  *)
    echo "usage: tools/pytorch_results.sh [policies|rounds|observe|record|hits]" >&2
    exit 2
    ;;
esac
