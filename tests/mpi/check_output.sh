#!/bin/sh
# check_output.sh FILE [CREATED]: check_output.py where python has h5py; else h5dump follows default, signal and axes to the images.
set -eu
here=$(dirname "$0")
if python3 -c 'import h5py' 2>/dev/null; then exec python3 "$here/check_output.py" "$@"; fi
attribute() { h5dump -a "$2" "$1" | sed -n 's/.*): //p' | tr -d '",'; }
entry=$(attribute "$1" /default)
data=$(attribute "$1" "/$entry/default")
signal=$(attribute "$1" "/$entry/$data/signal")
h5dump -H -d "/$entry/$data/$signal" "$1" | grep -q H5T_IEEE_F32LE
for axis in $(attribute "$1" "/$entry/$data/axes"); do h5dump -H -d "/$entry/$data/$axis" "$1" >/dev/null; done
h5dump -d "/$entry/frames/state" "$1" >/dev/null
echo "/$entry/$data/$signal: opened with h5dump (no h5py here)"
