#!/bin/sh
# Fuzzes the parsers of bytes that others wrote, with libFuzzer and the address and undefined-behaviour sanitizers.
# usage: tests/fuzz/run.sh [SECONDS EACH] [TARGET ...]     needs clang; exit 77 without it
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
seconds=${1:-20}
[ $# -gt 0 ] && shift
command -v clang >/dev/null 2>&1 || { echo "skipped: fuzzing needs clang"; exit 77; }
work=${PS_FUZZ_DIR:-$root/build-fuzz}
mkdir -p "$work"
input=$root/src/input
core="$root/src/core/error.c $root/src/core/types.c"

sources() {
    case $1 in
    bslz4 | bslz4_round) echo "$input/bslz4.c $input/lz4_block.c $input/bit_shuffle.c" ;;
    npy) echo "$input/npy.c $input/file_read.c" ;;
    mib) echo "$input/mib.c" ;;
    empad) echo "$input/empad.c $input/xml.c" ;;
    *) echo "run.sh: no target '$1'; there are bslz4 bslz4_round npy mib empad" >&2; return 1 ;;
    esac
}

[ $# -gt 0 ] || set -- bslz4 bslz4_round npy mib empad
for target in "$@"; do
    files=$(sources "$target")
    # shellcheck disable=SC2086
    clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I"$root" -I"$root/src" \
        "$here/fuzz_$target.c" $files $core -llz4 -lm -o "$work/fuzz_$target"
    mkdir -p "$work/corpus_$target"
    seeds=$here/seeds/$target
    [ -d "$seeds" ] || seeds=
    # shellcheck disable=SC2086
    "$work/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$work/crash_${target}_" "$work/corpus_$target" $seeds >"$work/log_$target" 2>&1 || {
        tail -40 "$work/log_$target"
        echo "fuzz $target: FAILED, the input is in $work/crash_${target}_*"
        exit 1
    }
    echo "fuzz $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log_$target") inputs, no crash"
done
