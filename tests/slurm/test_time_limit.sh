#!/usr/bin/env bash
# Slurm warns the job before its time limit: it ends with 75, goes back into the queue by itself, and a later run completes it: the second
# one, or one after that. For Slurm looks at time limits every half a minute and warns half a minute early, so with these short ones a run
# that is at work when it looks is warned, however long it has run.
set -euo pipefail
source "$(dirname "$0")/cluster.sh"
source "$(dirname "$0")/jobs.sh"

has_restarted() { [ "$(restarts_of "$1")" -ge 1 ]; }

run_with() {
    local launcher=$1 job log
    rm -f out.h5
    slow_down 40000
    job=$(submit --time 1 --warn 40 --launcher "$launcher" --template cpu --ranks-per-node 2 job.json)
    wait_until 100 has_restarted "$job"
    speed_up
    ends_as COMPLETED 120 "$job"
    log=ptyseries.$job.log
    grep -q "restart 0\] exit status 75" "$log" || fail "the first run did not end with 75"
    grep -q "restart [1-9][0-9]*\] exit status 0" "$log" || fail "no later run completed"
    same reference.h5 out.h5
}

cluster_start 1
cd "$cluster_dir/work"
series . 60
run_with srun
run_with mpirun
