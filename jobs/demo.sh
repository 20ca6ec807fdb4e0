#!/usr/bin/env bash
# Everything once, on a fresh machine: packages, build, a small simulated series, its reconstruction on two MPI ranks, pictures.
#   usage: jobs/demo.sh [--no-setup]      leaves demo-output/ in the source tree
set -euo pipefail
cd "$(dirname "$0")/.."
output=demo-output
program=build/ptyseries

build_program() {
    cmake --preset release
    cmake --build --preset release -j "$(nproc)" --target ptyseries
}

# OpenMPI refuses root and more ranks than cores unless told; a demonstration in a container is both.
allow_small_machines() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
}

reconstruct() {
    "$program" run jobs/demo_simulate.json --overwrite
    mpirun -n 2 "$program" run jobs/demo.json --overwrite --set compute.backend=cpu
    "$program" preview "$output/demo.h5" --to "$output/pictures"
}

show_what_is_there() {
    printf '\nDone. Look at\n'
    printf '  %s\n' "$PWD/$output/pictures/report.html" "$PWD/$output"/pictures/{series,sweep}_*.png
    printf 'One picture a frame, method and strength stands beside them; %s info %s/demo.h5 says what the file holds.\n' "$program" "$output"
}

[ "${1:-}" = --no-setup ] || scripts/setup.sh
build_program
allow_small_machines
reconstruct
show_what_is_there
