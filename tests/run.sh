#!/usr/bin/env bash
# All set-up and the whole test suite: what a contributor runs before sending a change, and what CI runs.
#   usage: tests/run.sh [--no-setup]
# Goes on after a failed step so that one run tells everything, and says in the end which tests were skipped and why; exit status 1 when
# any step failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
jobs=$(nproc)
passed=0 failed=0 report=""

set_environment() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    python3 -c 'import h5py, jsonschema, numpy' 2>/dev/null || export PATH=/usr/bin:$PATH
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

# run_tests PRESET ...: many tests mostly wait (for ranks, for Slurm, for a moment to strike), so twice as many run as there are cores;
# those that compute all the time count double.
run_tests() {
    rm -f "build-$1/tests.xml"
    ctest --preset "$1" -j $((2 * jobs)) --output-junit "$PWD/build-$1/tests.xml" --test-output-size-passed 1000000 "${@:2}"
}

set_environment
[ "${1:-}" = --no-setup ] || step "packages" scripts/setup.sh --dev --slurm
step "style and slips (lint)" tests/lint.sh
step "build, warnings are errors" build dev
step "all tests" run_tests dev
step "build with address and undefined sanitizers" build asan
step "unit, contract and reader tests under sanitizers" run_tests asan -L '^(unit|contract|readers)$'

printf '\n%ssteps: %d passed, %d failed\n\n' "$report" "$passed" "$failed"
python3 tests/skipped.py "all tests"=build-dev/tests.xml "under sanitizers"=build-asan/tests.xml
[ "$failed" -eq 0 ]
