#!/usr/bin/env bash
# Installs what ptyseries needs on Debian 12 or Ubuntu 24.04. Does nothing where everything stands already.
#   usage: scripts/setup.sh [--dev] [--slurm]
#     --dev    also what the test suite and contributors need
#     --slurm  also a Slurm and munge, for the tests that start a cluster of their own
# Not being root, it asks sudo. CUDA is used when it is there, never installed.
set -euo pipefail

build_packages=(build-essential cmake pkg-config git libopenmpi-dev openmpi-bin libhdf5-openmpi-dev libcjson-dev libexpat1-dev
    libfftw3-dev liblapacke-dev libopenblas-dev liblz4-dev zlib1g-dev libpng-dev libcmocka-dev)
dev_packages=(procps valgrind hdf5-tools bitshuffle shellcheck clang-format-14 cppcheck doxygen clang libclang-rt-dev python3 python3-numpy python3-h5py
    python3-jsonschema)
slurm_packages=(slurm-wlm munge)

fail() {
    printf 'setup.sh: %s\n' "$*" >&2
    exit 1
}

show_help() { sed -n '2,6s/^# \{0,1\}//p' "$0"; }

parse_arguments() {
    wanted=("${build_packages[@]}")
    for argument in "$@"; do
        case $argument in
            --dev) wanted+=("${dev_packages[@]}") ;;
            --slurm) wanted+=("${slurm_packages[@]}") ;;
            -h | --help) show_help && exit 0 ;;
            *) fail "unknown argument '$argument'; known are --dev, --slurm, --help" ;;
        esac
    done
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

find_missing() {
    missing=()
    for package in "${wanted[@]}"; do
        is_installed "$package" || missing+=("$package")
    done
}

require_apt() {
    command -v apt-get >/dev/null && return
    fail "this system has no apt-get. Build with your own packages or modules instead: a C11 compiler, CMake >= 3.25, pkg-config," \
        "OpenMPI 4 or newer, HDF5 built with MPI, cJSON, expat, FFTW (double and single), OpenBLAS, LAPACKE, LZ4, libpng, zlib, cmocka"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "missing packages: ${missing[*]}. Neither root nor sudo is at hand: ask an administrator to install them"
    fi
}

install_missing() {
    if [ ${#missing[@]} -eq 0 ]; then
        echo "setup: every package is there"
        return
    fi
    echo "setup: installing ${missing[*]}"
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

report_cuda() {
    local nvcc
    nvcc=$(command -v nvcc || true)
    [ -n "$nvcc" ] || [ ! -x /usr/local/cuda/bin/nvcc ] || nvcc=/usr/local/cuda/bin/nvcc
    if [ -n "$nvcc" ]; then
        echo "setup: CUDA compiler $nvcc ($("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')): the cuda backend will be built"
    else
        echo "setup: no CUDA compiler: the cpu backend alone will be built"
    fi
}

parse_arguments "$@"
require_apt
find_missing
install_missing
report_cuda
