#!/usr/bin/env bash
# Makes the oracle's cases in a folder, unless those of this very script are there already. Exit status 77: no python3 with numpy and h5py.
#   usage: make_cases.sh DIRECTORY
set -euo pipefail
oracle=$(cd "$(dirname "$0")" && pwd)/oracle.py
if ! python3 -c 'import h5py, numpy' 2>/dev/null; then
    echo "skipped: the oracle needs python3 with numpy and h5py"
    exit 77
fi
mkdir -p "$1"
stamp=$(sha256sum "$oracle" | cut -d' ' -f1)
[ "$(cat "$1/stamp" 2>/dev/null)" != "$stamp" ] || exit 0
rm -f "$1"/*.h5
OPENBLAS_NUM_THREADS=1 python3 "$oracle" "$1"
echo "$stamp" > "$1/stamp"
