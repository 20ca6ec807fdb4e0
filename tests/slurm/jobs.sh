# What the Slurm tests do with jobs, sourced after cluster.sh. Each test is called as test_NAME.sh PROGRAM INJECT_LIBRARY.
# shellcheck shell=bash

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PTYSERIES_HOME=$tests/../..
program=$(realpath "$1")
inject_library=$2
export PTYSERIES=$program
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

fail() {
    echo "FAILED: $*" >&2
    find . -name '*.log' -exec tail -v -n 30 {} + >&2
    exit 1
}

# recordings FOLDER N_FRAMES: makes a small series (tests/series) and its job FOLDER/job.json, whose output is FOLDER/out.h5.
recordings() {
    mkdir -p "$1"
    cp "$tests/../series/reconstruct.json" "$1/job.json"
    cp "$tests/../series/simulate.json" "$1"
    "$program" run "$1/simulate.json" --quiet --set "simulate.frames=$2"
}

# series FOLDER N_FRAMES: the same, and FOLDER/reference.h5, what one undisturbed process makes of it.
series() {
    recordings "$1" "$2"
    "$program" run "$1/job.json" --quiet --set output.file=reference.h5
}

same() { python3 "$tests/compare.py" "$@" || fail "output differs from the undisturbed run"; }

# submit ARGUMENTS OF slurm/submit.sh: prints the job's id.
submit() { "$PTYSERIES_HOME/slurm/submit.sh" --yes --cores-per-rank 1 --mem 1000 --time 60 "$@" | sed -n 's/^Submitted batch job //p'; }

job_field() { scontrol show job --oneliner "$1" | sed -n "s/.* $2=\([^ ]*\).*/\1/p"; }

# wait_until SECONDS COMMAND...: until the command succeeds.
wait_until() {
    local limit=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$limit" ] || fail "waited in vain for: $*"
        sleep 0.2
    done
}

job_is() { [[ " $2 " == *" $(job_field "$1" JobState) "* ]]; }

job_has_ended() { job_is "$1" "COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL OUT_OF_MEMORY"; }

# ends_as STATE SECONDS JOB
ends_as() {
    wait_until "$2" job_has_ended "$3"
    job_is "$3" "$1" || fail "job $3 ended as $(job_field "$3" JobState), expected $1"
}

restarts_of() { job_field "$1" Restarts; }

# As users look at it from a login node while the run writes.
some_frames_are_done() { [ -f "$1" ] && "$program" info "$1" | grep -Eq '[1-9][0-9]* done'; }

# Jobs submitted from here on run slowly, as on a file system under load, when they start while the file `slow` is there: long enough to
# be interrupted, while the run after that is quick. slow_down MICROSECONDS_A_WRITE
slow_down() {
    cat >slow_program <<EOF
#!/bin/bash
[ ! -e "$PWD/slow" ] || export LD_PRELOAD=$inject_library PS_INJECT_PATH=out.h5 PS_INJECT_WRITE_US=$1
exec "$program" "\$@"
EOF
    chmod +x slow_program
    export PTYSERIES=$PWD/slow_program
    touch slow
}

speed_up() { rm -f slow; }
