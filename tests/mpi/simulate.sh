#!/bin/sh
# simulate.sh PROGRAM SOURCE MPIRUN...: simulated files are the same bytes on 1, 2, 3 and 5 ranks, with counts held in memory or turned
# through a temporary file; nothing else is left behind; and the series is reconstructed to what its truth says.
set -eu
program=$1 source=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for ranks in 1 2 3 5; do
    mkdir "$folder/$ranks"
    cp "$source/tests/mpi/simulate.json" "$folder/$ranks/job.json"
    "$@" "$ranks" "$program" run "$folder/$ranks/job.json"
    diff -r "$folder/1" "$folder/$ranks"
done
mkdir "$folder/disk"
cp "$source/tests/mpi/simulate.json" "$folder/disk/job.json"
"$program" run "$folder/disk/job.json" --set compute.memory_budget_GiB=0.002 --set compute.threads=3
for file in "$folder"/disk/*; do
    case $file in *_master.h5) continue ;; esac # a master keeps the job with its settings
    cmp "$file" "$folder/1/$(basename "$file")"
done
test "$(find "$folder/disk" -type f | wc -l)" = "$(find "$folder/1" -type f | wc -l)"
echo "1, 2, 3 and 5 ranks and little memory agree"

if "$program" run "$folder/1/job.json" 2> "$folder/refused"; then exit 1; fi
grep -q 's_000_master.h5: exists already' "$folder/refused"

cp "$source/tests/mpi/simulate_reconstruct.json" "$folder/1/reconstruct.json"
"$@" 2 "$program" run "$folder/1/reconstruct.json"
python3 "$source/tests/mpi/check_truth.py" "$folder/1/out.h5" "$folder/1/s_{:03d}_truth.h5" 0.9995
