#!/usr/bin/env bash
# Style and slips that need no run: every C and CUDA file is as clang-format 14 writes it, cppcheck finds nothing, shell scripts, batch
# templates included, pass shellcheck, and Doxygen understands every header and finds every page that a page links to. What cannot be checked for want of a tool is said; exit status 1 when a check failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
failed=0

check() {
    if "${@:2}"; then echo "lint: $1: passed"; else echo "lint: $1: FAILED"; failed=1; fi
}

skip() { echo "lint: $1: SKIPPED: $2"; }

# Other versions write the same settings differently.
find_clang_format() {
    local program
    for program in clang-format-14 clang-format; do
        if command -v "$program" >/dev/null && "$program" --version | grep -q 'version 14\.'; then
            echo "$program"
            return
        fi
    done
}

check_format() { git ls-files -z '*.c' '*.h' '*.cu' '*.cuh' | xargs -0 "$clang_format" --dry-run -Werror; }

check_code() {
    cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr --suppressions-list=tests/cppcheck.supp \
        --error-exitcode=1 -I . -I src -D _GNU_SOURCE -D PS_ASSERTIONS src kernels tests
}

check_shell() {
    git ls-files -z '*.sh' '*.sbatch' .ci/run |
        xargs -0 shellcheck --severity=warning --external-sources --source-path=.:SCRIPTDIR --shell=bash
}

# The filter that makes plain comments visible to Doxygen must work too: a function's text is looked for.
check_pages() {
    rm -rf build-docs
    doxygen docs/Doxyfile || return 1
    grep -q 'Plans memory without touching a device' build-docs/html/backend_8h.html && return
    echo "build-docs/html/backend_8h.html lacks the text of ps_backend_memory_plan: does scripts/doxygen_filter.py work?" >&2
    return 1
}

clang_format=$(find_clang_format)
if [ -n "$clang_format" ]; then
    check "clang-format" check_format
elif command -v clang-format >/dev/null; then
    skip "clang-format" "found $(clang-format --version), expected version 14, with which the tree is formatted"
else
    skip "clang-format" "it is not installed (scripts/setup.sh --dev installs version 14)"
fi
if command -v cppcheck >/dev/null; then
    check "$(cppcheck --version)" check_code
else
    skip "cppcheck" "it is not installed (scripts/setup.sh --dev installs it)"
fi
if command -v shellcheck >/dev/null; then
    check "shellcheck" check_shell
else
    skip "shellcheck" "it is not installed (scripts/setup.sh --dev installs it)"
fi
if command -v doxygen >/dev/null; then
    check "doxygen $(doxygen --version)" check_pages
else
    skip "doxygen" "it is not installed (scripts/setup.sh --dev installs it)"
fi
exit $failed
