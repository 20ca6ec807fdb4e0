# What all templates of this folder share, sourced inside a batch job. docs/slurm.md tells the story.
#   ps_job_run JOB.json [OPTIONS OF ptyseries run]  runs the job on all ranks of the allocation and returns its exit status
#   ps_sweep_run JOB.json SWEEP.txt                 the same once for each line of settings (key=value key=value ...)
# An interrupted run (exit status 75, or a signal to the batch shell) ends the batch job and, within MAX_RESTARTS, requeues it.
# The templates set LAUNCHER (srun or mpirun), PTYSERIES (the program), MAX_RESTARTS and SCRATCH (empty: none).
# shellcheck shell=bash

ps_interrupted= # the signal that has reached the batch shell
ps_waiting=     # empty while a signal has cut a wait short
ps_launcher=    # process id of srun or mpirun while it runs
ps_repeater=    # process id of the loop that asks again, after a first signal

# Inside an array the plain job id of one task may stand for the whole array, so the task is always named.
ps_job_id() {
    if [ -n "${SLURM_ARRAY_JOB_ID:-}" ]; then
        echo "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
    else
        echo "$SLURM_JOB_ID"
    fi
}

ps_say() { printf '%s [job %s, restart %s] %s\n' "$(date '+%F %T')" "$(ps_job_id)" "${SLURM_RESTART_COUNT:-0}" "$*"; }

ps_job_state() { scontrol show job --oneliner "$(ps_job_id)" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }

# Replaces its shell. Ranks see every GPU of their node; the program takes the one of its node-local rank.
ps_launch() {
    case $LAUNCHER in
        srun) exec srun --mpi=pmix --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" "$@" ;;
        mpirun) exec mpirun --bind-to none "$@" ;;
        *) ps_say "LAUNCHER is '$LAUNCHER'; expected srun or mpirun" && exit 2 ;;
    esac
}

# A signal to the batch shell becomes SIGUSR1 for all ranks: on SIGTERM, mpirun would kill them after one second. A launcher that is still
# starting its ranks may drop the signal, so it is sent again until the launcher ends; ranks that are stopping already take no notice.
ps_forward() {
    ps_interrupted=$1
    ps_waiting=
    if [ -n "$ps_launcher" ] && kill -USR1 "$ps_launcher" 2>/dev/null && [ -z "$ps_repeater" ]; then
        ps_repeat "$ps_launcher" &
        ps_repeater=$!
    fi
}

ps_repeat() {
    trap - USR1 TERM
    while sleep 3; do kill -USR1 "$1" 2>/dev/null || exit 0; done
}

# Sets ps_status to the launcher's exit status; a signal ends one wait, not the waiting.
ps_wait() {
    while [ -z "$ps_waiting" ]; do
        ps_waiting=yes
        ps_status=0
        wait "$ps_launcher" || ps_status=$?
        [ -n "$ps_waiting" ] || ps_say "SIG$ps_interrupted arrived: asking the ranks to stop"
    done
    [ -z "$ps_repeater" ] || kill "$ps_repeater" 2>/dev/null || true
    ps_launcher=
    ps_waiting=
    ps_repeater=
}

ps_on_each_node() { srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --cpus-per-task=1 "$@"; }

# Temporary files, OpenMPI's included, go to a folder of this job on every node and leave with it.
ps_scratch_begin() {
    [ -n "$SCRATCH" ] || return 0
    export TMPDIR=$SCRATCH/ptyseries.$SLURM_JOB_ID
    export OMPI_MCA_btl_vader_backing_directory=$TMPDIR
    ps_on_each_node mkdir -p "$TMPDIR" || { ps_say "could not make $TMPDIR on every node" && exit 1; }
}

ps_scratch_end() {
    [ -n "$SCRATCH" ] || return 0
    ps_on_each_node rm -rf "$SCRATCH/ptyseries.$SLURM_JOB_ID" || ps_say "could not remove $SCRATCH/ptyseries.$SLURM_JOB_ID"
}

# Ends the batch job. A job that Slurm is cancelling is left alone.
ps_requeue() {
    local restarts=${SLURM_RESTART_COUNT:-0} state
    trap '' USR1 TERM # requeueing sends another
    state=$(ps_job_state)
    if [ "$state" != RUNNING ]; then
        ps_say "interrupted while Slurm itself ends this job ($state); unless it starts again, submit the same script to go on"
    elif [ "$restarts" -ge "$MAX_RESTARTS" ]; then
        ps_say "interrupted, and restarted $restarts times already (MAX_RESTARTS=$MAX_RESTARTS): not requeued;" \
            "submit the same script to go on"
    elif scontrol requeue "$(ps_job_id)"; then
        ps_say "interrupted and requeued: the next run goes on after the last finished frame"
    else
        ps_say "interrupted, and Slurm refused to requeue; submit the same script to go on"
    fi
    exit 75
}

# True when the run was stopped by a signal: it said so, or the signal came before the program could answer it.
ps_was_interrupted() { [ "$ps_status" -eq 75 ] || { [ -n "$ps_interrupted" ] && [ "$ps_status" -ge 128 ]; }; }

ps_job_run() {
    trap 'ps_forward USR1' USR1
    trap 'ps_forward TERM' TERM
    export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
    ps_say "ptyseries run $* ($LAUNCHER, ${SLURM_NTASKS:-1} ranks, $SLURM_JOB_NODELIST)"
    ps_scratch_begin
    ps_status=75
    if [ -z "$ps_interrupted" ]; then
        ps_launch "$PTYSERIES" run "$@" --resume &
        ps_launcher=$!
        ps_wait
    fi
    ps_scratch_end
    ps_say "exit status $ps_status"
    if ps_was_interrupted; then ps_requeue; fi
    return "$ps_status"
}

ps_sweep_run() {
    local job=$1 line setting worst=0 options
    while read -r line; do
        case $line in '' | '#'*) continue ;; esac
        options=()
        for setting in $line; do options+=(--set "$setting"); done
        ps_job_run "$job" "${options[@]}" </dev/null || worst=$?
    done <"$2"
    return "$worst"
}
