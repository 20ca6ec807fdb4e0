#!/bin/sh
# Fuzzes the parsers of bytes that others wrote, with libFuzzer and the address and undefined-behaviour sanitizers.
# usage: tests/fuzz/run.sh [SECONDS EACH] [TARGET ...]     needs clang; exit 77 without it
# PS_FUZZ_DIR keeps programs, logs and what was found to be interesting (corpus_*), which later runs start from.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
all="bslz4 bslz4_round unpack npy mib empad reader hdf5_index job optics names fingerprint"
seconds=${1:-20}
[ $# -gt 0 ] && shift
command -v clang >/dev/null 2>&1 || { echo "skipped: fuzzing needs clang"; exit 77; }
work=${PS_FUZZ_DIR:-$root/build-fuzz}
mkdir -p "$work"
src=$root/src
formats=$src/input/formats
core="$src/core/assert.c $src/core/busy.c $src/core/log.c $src/core/error.c $src/core/types.c $root/kernels/aberrations.c"
json="$src/core/json.c $src/core/text.c $src/core/utf8.c $src/core/regular.c"

sources() {
    case $1 in
    bslz4 | bslz4_round) echo "$src/hdf5/bslz4.c $src/hdf5/lz4_block.c $src/hdf5/bit_shuffle.c" ;;
    unpack) echo "$root/kernels/unpack.c $src/core/byte_order.c $src/hdf5/bslz4.c $src/hdf5/lz4_block.c $src/hdf5/bit_shuffle.c" ;;
    npy) echo "$formats/npy_header.c $src/core/file_read.c $src/core/regular.c" ;;
    mib) echo "$formats/mib_header.c" ;;
    empad) echo "$formats/empad_xml.c $formats/xml.c" ;;
    reader | names) echo "$src/hdf5/*.c $formats/*.c $src/input/adapters/*.c $(find "$src/input" -maxdepth 1 -name '*.c' ! -name loader.c ! -name 'packed*.c' | tr '\n' ' ') $src/optics/optics.c $src/core/text.c $src/core/file_read.c $src/core/byte_order.c $src/core/regular.c" ;;
    hdf5_index) echo "$src/hdf5/index.c $src/hdf5/failure.c $src/core/file_read.c $src/core/regular.c" ;;
    job) echo "$src/job/*.c $src/tasks/*/entry.c $src/method/*.c $src/fit/parameters.c $root/kernels/backend_names.c $src/optics/optics.c $src/optics/optics_json.c $src/optics/quantem_fit.c $json" ;;
    optics) echo "$src/optics/optics.c $src/optics/optics_json.c $src/optics/quantem_fit.c $src/optics/warnings.c $src/optics/plan.c $json" ;;
    fingerprint) echo "$src/store/fingerprint.c" ;;
    *) echo "run.sh: no target '$1'; there are $all" >&2; return 1 ;;
    esac
}

# Where seeds lie that other parts of the repository keep.
seeds() {
    ls -d "$here/seeds/$1" 2>/dev/null || true
    case $1 in
    job) ls -d "$root/jobs" "$root/tests/series" "$root/tests/mpi" ;;
    optics) ls -d "$root/configs/optics" ;;
    esac
}

# The texts in the target's sources; parsers of JSON see them as keys and strings.
dictionary() {
    quote=
    case $1 in job | optics) quote='\\"' ;; esac
    # shellcheck disable=SC2046
    grep -oh '"[A-Za-z0-9_$:./<>,= -]\{2,40\}"' $(sources "$1" | tr ' ' '\n' | grep -v "$src/core") | grep -v '^", ' | sort -u |
        sed "s|^\"\(.*\)\"\$|\"$quote\1$quote\"|"
}

[ $# -gt 0 ] || eval "set -- $all"
flags="-std=gnu11 -D_GNU_SOURCE -DPS_ASSERTIONS -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Wno-unknown-pragmas"
hdf5=hdf5
for name in hdf5-mpich hdf5-openmpi; do
    if pkg-config --exists $name; then hdf5=$name; fi
done
libraries=$(pkg-config --cflags --libs $hdf5 libcjson expat liblz4 zlib)
for target in "$@"; do
    files=$(sources "$target")
    dictionary "$target" >"$work/dict_$target"
    # shellcheck disable=SC2086
    clang $flags -I"$root" -I"$src" "$here/fuzz_$target.c" $files $core $libraries -lm -o "$work/fuzz_$target"
    mkdir -p "$work/corpus_$target"
    # shellcheck disable=SC2046
    "$work/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 \
        -dict="$work/dict_$target" -artifact_prefix="$work/crash_${target}_" "$work/corpus_$target" $(seeds "$target") \
        >"$work/log_$target" 2>&1 || {
        tail -40 "$work/log_$target"
        echo "fuzz $target: FAILED, the input is in $work/crash_${target}_*"
        exit 1
    }
    echo "fuzz $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log_$target") inputs," \
        "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$work/log_$target" | tail -1) edges, no crash"
done
