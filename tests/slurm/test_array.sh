#!/usr/bin/env bash
# One task of an array is interrupted: it alone goes back into the queue, though its job id is that of the whole array.
set -euo pipefail
source "$(dirname "$0")/cluster.sh"
source "$(dirname "$0")/jobs.sh"

cluster_start 2
cd "$cluster_dir/work"
series one 16
series two 16
slow_down 15000
array=$(submit --template array one/job.json two/job.json)
wait_until 120 some_frames_are_done one/out.h5
wait_until 120 some_frames_are_done two/out.h5
scancel --batch --signal=USR1 "${array}_1"
wait_until 120 grep -q "requeued" "one/ptyseries.${array}_1.log"
speed_up
ends_as COMPLETED 120 "${array}_1"
ends_as COMPLETED 120 "${array}_2"
[ "$(restarts_of "${array}_1")" -eq 1 ] || fail "task 1 restarted $(restarts_of "${array}_1") times, expected 1"
[ "$(restarts_of "${array}_2")" -eq 0 ] || fail "task 2 restarted $(restarts_of "${array}_2") times, expected 0"
same one/reference.h5 one/out.h5
same two/reference.h5 two/out.h5
