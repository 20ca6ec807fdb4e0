#!/bin/sh
# full_disk.sh WRITE_OUTPUT MPIRUN...: on a file system that is too small the creation fails with the reason and its cure, on all ranks, and
# leaves nothing; on one that is just large enough everything is written, since blocks are reserved at creation.
set -eu
program=$1
shift
if ! unshare -m true 2>/dev/null; then
    echo "skipped: mounting a small file system is not allowed here"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export program folder
unshare -m sh -euc '
    mount -t tmpfs -o size=600k tmpfs "$folder" || exit 77
    if "$@" 2 "$program" "$folder/run.h5" 12 0 create 0 2>"$folder.log"; then echo "a full disk went unnoticed"; exit 1; fi
    grep "No space left on device; the file system is full" "$folder.log" | head -1
    [ -z "$(ls -A "$folder")" ] || { echo "left behind:"; ls -l "$folder"; exit 1; }
    mount -o remount,size=8m "$folder"
    "$@" 2 "$program" "$folder/run.h5" 12 0 begin 0 && rm "$folder/run.h5.created"
    dd if=/dev/zero of="$folder/filler" bs=64k 2>/dev/null || true
    "$@" 2 "$program" "$folder/run.h5" 12 0 resume 0
' sh "$@" || { code=$?; cat "$folder.log"; rm -f "$folder.log"; exit $code; }
rm -f "$folder.log"
echo "a full disk is said and leaves nothing behind"
