#!/bin/sh
# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# What `make demo` says fits 80 columns, and the commands it shows are those it runs (but for where figures go). With a
# stand-in for the program, which writes down what it was asked.
set -eu
demo=$(cd "$(dirname "$0")/../../tools" && pwd)/demo.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin"
cat >"$scratch/bin/sealane" <<'END'
#!/bin/sh
echo "sealane $*" >>"$(dirname "$0")/asked"
[ "$1" != run ] # which has to fail: the demo flips a bit
END
chmod +x "$scratch/bin/sealane"
sh "$demo" "$scratch/bin/sealane" >"$scratch/said"

wide=$(grep -v "$scratch" "$scratch/said" | awk 'length > 80') # names of directories are theirs
[ -z "$wide" ] || { printf 'wider than 80 columns:\n%s\n' "$wide"; exit 1; }
# Lines that end in a backslash go on.
sed -e :a -e '/\\$/N; s/ *\\\n */ /; ta' "$scratch/said" | sed -n 's/^\$ //p' >"$scratch/shown"
[ "$(wc -l <"$scratch/shown")" -ge 5 ] || { echo "the demo shows too little"; exit 1; }
sed 's/ --json [^ ]*$//' "$scratch/bin/asked" >"$scratch/ran"
while read -r line; do
  grep -qxF -- "$line" "$scratch/ran" || { echo "shown, but not what was run: $line"; exit 1; }
done <"$scratch/shown"
