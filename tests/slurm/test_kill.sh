#!/usr/bin/env bash
# A rank is killed: the job ends, with an error and without hanging; the same script submitted again completes the output.
set -euo pipefail
source "$(dirname "$0")/cluster.sh"
source "$(dirname "$0")/jobs.sh"

is_program() { [ "$(readlink "/proc/$1/exe")" = "$program" ]; }

# Ids of the ranks of this test's cluster, without the helpers that they fork.
ranks() {
    local process
    for process in $(cluster_processes); do
        is_program "$process" || continue
        is_program "$(awk '{print $4}' "/proc/$process/stat")" || echo "$process"
    done
}

run_with() {
    local job victim
    rm -f out.h5
    slow_down 40000
    job=$(submit --launcher "$1" --template cpu --ranks-per-node 2 job.json)
    wait_until 120 some_frames_are_done out.h5
    victim=$(ranks | tail -n 1)
    [ -n "$victim" ] || fail "the run ended before a rank could be killed"
    kill -KILL "$victim"
    ends_as FAILED 120 "$job"
    speed_up
    job=$(sbatch --parsable job.sbatch)
    ends_as COMPLETED 120 "$job"
    same reference.h5 out.h5
}

cluster_start 1
cd "$cluster_dir/work"
series . 40
run_with srun
run_with mpirun
