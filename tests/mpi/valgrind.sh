#!/usr/bin/env bash
# A small run under valgrind: no error and no leak in the program's own code.
#   usage: valgrind.sh PROGRAM SERIES_FOLDER SUPPRESSIONS
set -euo pipefail
command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 77; }
program=$1 series=$2 suppressions=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$series"/*.json "$folder"
export OMP_NUM_THREADS=1
"$program" run "$folder/simulate.json" --quiet --set simulate.frames=2

checked() { valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --suppressions="$suppressions" "$program" "$@"; }

checked check "$folder/reconstruct.json" >"$folder/check.txt"
for precision in fast reference; do
    checked run "$folder/reconstruct.json" --quiet --set compute.precision=$precision --set "output.file=$precision.h5"
done
checked info "$folder/fast.h5" >"$folder/info.txt"
checked preview "$folder/fast.h5" >"$folder/preview.txt"
echo "valgrind: check, run in both precisions, info and preview without error or leak"
