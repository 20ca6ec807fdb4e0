#!/usr/bin/env bash
# All set-up and the whole test suite: what a contributor runs before sending a change, and what CI runs.
#   usage: tests/run.sh [--no-setup]
# Goes on after a failed step so that one run tells everything; exit status 1 when any step failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
jobs=$(nproc)
passed=0 failed=0 report=""

set_environment() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    python3 -c 'import h5py, hdf5plugin, jsonschema, numpy' 2>/dev/null || export PATH=/usr/bin:$PATH
}

step() {
    local name=$1 begin=$SECONDS outcome
    shift
    printf '\n=== %s\n' "$name"
    if "$@"; then outcome=passed passed=$((passed + 1)); else outcome=FAILED failed=$((failed + 1)); fi
    report+=$(printf '  %-52s %-6s %5d s' "$name" "$outcome" $((SECONDS - begin)))$'\n'
}

# build PRESET: configures and builds; with the dev preset that compiles the CUDA kernels too where nvcc is there.
build() { cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs"; }

set_environment
[ "${1:-}" = --no-setup ] || step "packages" scripts/setup.sh --dev --slurm
step "shell scripts" tests/lint.sh
step "build, warnings are errors" build dev
step "all tests" ctest --preset dev -j "$jobs"
step "build with address and undefined sanitizers" build asan
step "unit, contract and reader tests under sanitizers" ctest --preset asan -j "$jobs" -L '^(unit|contract|readers)$'

printf '\n%ssteps: %d passed, %d failed\n' "$report" "$passed" "$failed"
[ "$failed" -eq 0 ]
