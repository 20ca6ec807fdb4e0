#!/bin/sh
# output.sh WRITE_OUTPUT CHECK MPIRUN...: the same output, byte for byte in its results, on 1, 2, 3 and 5 ranks; checked with h5py.
set -eu
program=$1 check=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for ranks in 1 2 3 5; do
    "$@" "$ranks" "$program" "$folder/$ranks.h5" 7 0 create 0
    "$check" "$folder/$ranks.h5" "$folder/$ranks.h5.created"
done
"$@" 2 "$program" "$folder/pieces.h5" 7 100 create 0 # pieces smaller than one image row
"$@" 2 "$program" "$folder/small.h5" 1 0 create 0    # more ranks than frames
"$check" "$folder/pieces.h5" "$folder/pieces.h5.created"
"$check" "$folder/small.h5" "$folder/small.h5.created"
for name in phase/phase complex/phase complex/log_amplitude ssb/phase phase/gcv complex/residual ssb/loss frames/crc32 optics_0/weights optics_1/weights; do
    for other in 2 3 5 pieces; do
        h5diff "$folder/1.h5" "$folder/$other.h5" "/entry/$name" "/entry/$name"
    done
done
echo "1, 2, 3, 5 ranks and small pieces agree"
