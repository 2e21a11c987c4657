#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# links.sh PROGRAM...: what the preload writes does not go through links that somebody left in a directory that
# everybody writes to, where its names can be foreseen. LD_PRELOAD is for the program alone.
set -eu
preload=$LD_PRELOAD
unset LD_PRELOAD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -m 1777 "$scratch/shared"
mine=$scratch/mine
bad=0
# shellcheck disable=SC2016
run() { # what is set beside the program's own environment; $$ is the program's number
  echo precious >"$mine"
  env preload="$preload" mine="$mine" at="$scratch/shared" sh -c "$1"' exec env LD_PRELOAD="$preload" "$@"' sh "$program" $rest || true
  [ "$(cat "$mine")" = precious ] || { echo "written through a link: $1"; bad=1; }
}
program=$1
shift
rest="$*"
leave='ln -s "$mine" "$at/$name"; [ "$(id -u)" != 0 ] || chown -h 65534 "$at/$name";'
for kind in STATS TRACE METRICS; do
  run 'name='$kind'.$$.part; '"$leave"' export SEALANE_'$kind'="$at/'$kind'";'
  [ -s "$scratch/shared/$kind" ] || { echo "$kind: nothing was written"; bad=1; }
done
if [ "$(id -u)" = 0 ]; then # only root can leave a link in another's name
  run 'name=named; '"$leave"' export SEALANE_STATS="$at/named";'
  run 'name=trace.$$; '"$leave"' export SEALANE_TRACE="$at/trace.%p";'
fi
exit $bad
