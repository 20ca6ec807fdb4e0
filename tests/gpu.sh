#!/usr/bin/env bash
# Everything that needs a GPU, on a host that has one: build, the contract suite on every backend, compute-sanitizer on small cases,
# the virus series on two ranks of one card against the CPU, and the benchmark. A test that skips here has failed.
#   usage: tests/gpu.sh [DIRECTORY]     logs and the benchmark's table go to DIRECTORY (gpu-output)
#   PS_DATA    folder with reference/ and virus/ (default: ../shared/data beside the source tree)
#   PS_STEPS   which steps to do, of "contract sanitizer unpack mpi bench" (default: all)
# Exit status 1 when any step failed. The host needs the packages of README.md, nvcc, compute-sanitizer, and h5py for the comparison.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
out=$(mkdir -p "${1:-gpu-output}" && cd "${1:-gpu-output}" && pwd)
data=$(cd "${PS_DATA:-../shared/data}" && pwd) || exit
steps=${PS_STEPS:-contract sanitizer unpack mpi bench}
build=$PWD/build-gpu
failed=0 report=""
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PS_REQUIRE_GPU=1

step() {
    local name=$1 log=$out/$2.txt begin=$SECONDS outcome=passed
    shift 2
    "$@" > "$log" 2>&1 || { outcome=FAILED failed=$((failed + 1)); tail -n 25 "$log"; }
    report+=$(printf '  %-44s %-6s %4d s' "$name" "$outcome" $((SECONDS - begin)))$'\n'
}

wanted() { [[ " $steps " == *" $1 "* ]]; }

compile() {
    cmake -S . -B "$build" -DPS_CUDA=on -DPS_WERROR=ON -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=native &&
        cmake --build "$build" -j "$(nproc)"
}

# Stored cases of the reference folder and those the oracle makes, in one folder.
gather_cases() {
    tests/oracle/make_cases.sh "$build/cases" && cp "$data"/reference/*.h5 "$build/cases"
}

# A cmocka program that must pass and must not skip; $1: backends.
contract() {
    local program status=0
    for program in "$build"/tests/test_{stored_cases,backend_laws,backend_invariance,right_side_image,g_storage,packed_patterns,packed_files,host_memory,histogram,trials}; do
        [ -x "$program" ] || { echo "not built: $program"; status=1; continue; }
        PS_CONTRACT_BACKENDS=$1 PS_ORACLE_CASES=$build/cases "$program" || status=1 # 77, skipped, is a failure too
    done
    return $status
}

# $1: tool. The smallest of the cases, on the GPU alone.
sanitize() {
    mkdir -p "$build/few" && cp "$build"/cases/{plain,one_row,aliases_21}.h5 "$build/few"
    local leave_out=(--kernel-name-exclude kernel_substring=fft)
    [ "$1" != initcheck ] || leave_out=() # what cuFFT writes must be seen as written
    local program
    for program in test_stored_cases test_trials; do
        PS_CONTRACT_BACKENDS=cuda PS_ORACLE_CASES=$build/few compute-sanitizer --tool "$1" --error-exitcode 9 "${leave_out[@]}" \
            "$build/tests/$program" || return
    done
}

# Packed patterns alone: every packing and type on the GPU.
unpack() {
    "$build/tests/test_unpack" && PS_CONTRACT_BACKENDS=cuda "$build/tests/test_packed_patterns" &&
        PS_CONTRACT_BACKENDS=cuda "$build/tests/test_packed_files"
}

# $1: tool. Fewer of them.
sanitize_unpack() {
    PS_CONTRACT_BACKENDS=cuda PS_CONTRACT_FEW=1 compute-sanitizer --tool "$1" --error-exitcode 9 "$build/tests/test_packed_patterns"
}

# $1: backend, $2: upsampling, $3: precision.
virus_job() {
    cat <<JOB
{ "task": "reconstruct",
  "series": { "files": ["$data/virus/virus_*_master.h5"], "scan_shape": [127, 127] },
  "optics": "$data/virus/optics.json", "upsampling": $2, "weights": "poisson",
  "methods": { "ssb": { "estimator": "wave" }, "phase": { "strength": [0.1, 1.0] }, "complex": { "strength": [0.3] } },
  "output": { "file": "$build/virus_$1.h5" }, "compute": { "backend": "$1", "precision": "$3" } }
JOB
}

# The series on two ranks sharing one card, and in float64 on the CPU; images within section 9's tolerance.
virus() {
    virus_job cuda "$1" fast > "$build/virus_cuda.json" && virus_job cpu "$1" reference > "$build/virus_cpu.json" &&
        mpirun -n 2 "$build/ptyseries" run "$build/virus_cuda.json" --overwrite &&
        mpirun -n 2 "$build/ptyseries" run "$build/virus_cpu.json" --overwrite &&
        python3 tests/compare_images.py "$build/virus_cuda.h5" "$build/virus_cpu.h5" 2e-6
}

step "build" build compile
if [ "$failed" -eq 0 ]; then
    wanted contract && step "cases" cases gather_cases && step "contract suite, cuda" contract_cuda contract cuda
    wanted contract && step "contract suite, CPU and check backends" contract_cpu contract cpu-reference,cpu-fast,check-reference,check-fast
    if wanted sanitizer; then
        [ -d "$build/cases" ] || gather_cases > "$out/cases.txt" 2>&1
        for tool in memcheck racecheck initcheck synccheck; do step "compute-sanitizer $tool" "$tool" sanitize $tool; done
    fi
    if wanted unpack; then
        step "packed patterns, cuda" unpack unpack
        for tool in memcheck racecheck initcheck synccheck; do
            step "compute-sanitizer $tool, packed patterns" "unpack_$tool" sanitize_unpack $tool
        done
        step "benchmark, packed patterns" bench_unpack "$build/ptyseries" bench --rows unpack --json "$out/bench_unpack.json"
    fi
    wanted mpi && step "virus series, 2 ranks on one card, U = 7" virus virus 7
    wanted bench && step "benchmark" bench "$build/ptyseries" bench --json "$out/bench.json"
fi
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem --format=csv,noheader 2> /dev/null
printf '%s' "$report"
[ "$failed" -eq 0 ]
