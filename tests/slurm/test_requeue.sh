#!/usr/bin/env bash
# A job on two nodes is put back into the queue in mid-run, by scontrol requeue and because a node goes down, and completes.
set -euo pipefail
source "$(dirname "$0")/cluster.sh"
source "$(dirname "$0")/jobs.sh"

requeue() { scontrol requeue "$1"; }

# The node answers again at once and is taken back (ReturnToService), as after a reboot.
lose_node() { scontrol update nodename=n2 state=down reason=test; }

# run_with LAUNCHER INTERRUPTION
run_with() {
    local job
    rm -f out.h5
    slow_down 15000
    job=$(submit --launcher "$1" --template gpu_nodes --nodes 2 --ranks-per-node 2 job.json)
    wait_until 120 some_frames_are_done out.h5
    "$2" "$job"
    speed_up
    ends_as COMPLETED 120 "$job"
    [ "$(restarts_of "$job")" -eq 1 ] || fail "job $job restarted $(restarts_of "$job") times, expected 1"
    same reference.h5 out.h5
}

cluster_start 2
cd "$cluster_dir/work"
series . 40
run_with srun requeue
run_with mpirun requeue
run_with srun lose_node
