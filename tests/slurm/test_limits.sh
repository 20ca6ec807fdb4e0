#!/usr/bin/env bash
# A run that is interrupted again and again stops coming back after MAX_RESTARTS; a cancelled job does not come back at all.
set -euo pipefail
source "$(dirname "$0")/cluster.sh"
source "$(dirname "$0")/jobs.sh"

always_interrupted() {
    local job
    cat >interrupted <<EOF
#!/bin/bash
[ "\$1" = run ] || exec "$program" "\$@"
exit 75
EOF
    chmod +x interrupted
    job=$(PTYSERIES=$PWD/interrupted submit --template cpu --ranks-per-node 1 --max-restarts 1 job.json)
    ends_as FAILED 120 "$job"
    [ "$(restarts_of "$job")" -eq 1 ] || fail "restarted $(restarts_of "$job") times, expected 1"
    grep -q "restarted 1 times already (MAX_RESTARTS=1)" "ptyseries.$job.log" || fail "the log does not say why it stopped"
}

cancelled() {
    local job
    rm -f out.h5
    slow_down 15000
    job=$(submit --launcher "$1" --template cpu --ranks-per-node 2 job.json)
    wait_until 120 some_frames_are_done out.h5
    scancel "$job"
    ends_as CANCELLED 120 "$job"
    sleep 7 # long enough for a requeued job to be back
    ends_as CANCELLED 1 "$job"
    [ "$(restarts_of "$job")" -eq 0 ] || fail "a cancelled job was restarted"
    speed_up
    job=$(sbatch --parsable job.sbatch)
    ends_as COMPLETED 120 "$job"
    same reference.h5 out.h5
}

cluster_start 1
cd "$cluster_dir/work"
series . 16
always_interrupted
cancelled srun
cancelled mpirun
