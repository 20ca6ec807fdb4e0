#!/bin/sh
# kill_output.sh WRITE_OUTPUT CHECK KILLS SEED MPIRUN...: kill -9 of everything at random moments, creation included. After each the file,
# if there is one, opens and tells the truth; then the run is resumed, and in the end the results are those of an undisturbed run.
set -eu
program=$1 check=$2 kills=$3 seed=$4
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
frames=12
"$@" 2 "$program" "$folder/whole.h5" $frames 0 create 0

alive() { kill -0 "$1" 2>/dev/null; }
kill_all() { # the launcher and its ranks, by id
    ranks=$(ps -o pid= --ppid "$1" || true)
    for pid in "$1" $ranks; do kill -9 "$pid" 2>/dev/null || true; done
    for pid in $ranks; do while alive "$pid"; do sleep 0.01; done; done
}

kill=0 survived=0 before_creation=0
while [ $kill -lt "$kills" ]; do
    kill=$((kill + 1))
    delay=$(awk -v seed="$seed" -v kill=$kill 'BEGIN { srand(seed * 7919 + kill * 104729); for (i = 0; i < 9; i++) r = rand(); printf "%.3f", 0.15 + 0.75 * r }')
    [ $((kill % 3)) -eq 0 ] && rm -f "$folder/killed.h5" # begin anew now and then
    "$@" 2 "$program" "$folder/killed.h5" $frames 0 resume 100 >/dev/null 2>&1 &
    launcher=$!
    sleep "$delay"
    kill_all $launcher
    wait $launcher 2>/dev/null || true
    if [ -e "$folder/killed.h5" ]; then
        "$check" "$folder/killed.h5"
        survived=$((survived + 1))
    else
        before_creation=$((before_creation + 1))
    fi
done
"$@" 2 "$program" "$folder/killed.h5" $frames 0 resume 0
if python3 -c "import h5py" 2>/dev/null; then
# A byte that changed on disk is found and the frame done again.
python3 - "$folder/killed.h5" <<'END'
import h5py, sys
with h5py.File(sys.argv[1]) as file:
    offset = file["entry/complex/log_amplitude"].id.get_offset() + 5 * file["entry/complex/log_amplitude"][0].nbytes + 1
with open(sys.argv[1], "r+b") as file:
    file.seek(offset)
    byte = file.read(1)[0]
    file.seek(offset)
    file.write(bytes([byte ^ 1]))
END
"$@" 3 "$program" "$folder/killed.h5" $frames 0 resume 0 | grep "10 done, 1 failed, 1 pending, 1 damaged"
fi
"$check" "$folder/killed.h5"
for name in phase/phase complex/phase complex/log_amplitude ssb/phase phase/gcv complex/residual ssb/loss frames/crc32 optics_0/weights; do
    h5diff "$folder/whole.h5" "$folder/killed.h5" "/entry/$name" "/entry/$name"
done
left=$(find "$folder" -name '*partial*' -o -name '*lock*')
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
echo "seed $seed: $kills kills, $before_creation before the file existed, $survived files intact, resumed to the undisturbed result"
