#!/bin/sh
# Ranks that outnumber the cores do not spin while they wait, unless the user wants that. usage: waiting.sh PROGRAM MPIRUN...
program=$1
shift
unset OMP_NUM_THREADS OMP_WAIT_POLICY GOMP_SPINCOUNT OMPI_MCA_mpi_yield_when_idle
cores=$(nproc)
crowd=$((cores + 1))
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
failed=0

# A job that is not there: what ranks say before they look for it is enough.
look() { # RANKS ENVIRONMENT...
    ranks=$1
    shift
    $mpirun "$ranks" env OMP_DISPLAY_ENV=verbose "$@" "$program" run /nowhere/job.json >"$log" 2>&1
    status=$?
    [ $status -eq 2 ] || fail "exit status $status, expected 2"
}

fail() {
    echo "$ranks ranks on $cores cores: $1" >&2
    cat "$log" >&2
    failed=1
}

says() { grep -q "$1" "$log" || fail "does not say '$1'"; }
says_not() { ! grep -q "$1" "$log" || fail "says '$1'"; }

mpirun=$*
look 1
says_not "leave their core"
says_not "GOMP_SPINCOUNT = '0'"
look "$crowd"
says "$crowd ranks share $cores core.* of this node: threads that wait leave their core to others"
[ "$(grep -c "GOMP_SPINCOUNT = '0'" "$log")" -eq "$crowd" ] || fail "threads of OpenMP spin on some rank"
[ "$(grep -c "leave their core" "$log")" -eq 1 ] || fail "says it more than once a node"
says "nowhere/job.json" # the arguments went along
look "$crowd" OMP_WAIT_POLICY=active
says_not "GOMP_SPINCOUNT = '0'"
says "those of OpenMP as OMP_WAIT_POLICY and GOMP_SPINCOUNT say"
look 2 OMP_NUM_THREADS="$cores"
[ "$cores" -eq 1 ] || says "2 ranks of $cores threads share $cores cores"
exit $failed
