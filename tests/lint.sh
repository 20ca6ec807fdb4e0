#!/usr/bin/env bash
# Shell scripts, batch templates included, pass shellcheck; Doxygen understands every header and finds every page that a page links to.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z '*.sh' '*.sbatch' .ci/run | xargs -0 shellcheck --severity=warning --external-sources --source-path=.:SCRIPTDIR --shell=bash
if ! command -v doxygen >/dev/null; then
    echo "lint.sh: no doxygen here: headers and pages not checked (scripts/setup.sh --dev installs it)" >&2
    exit 1
fi
rm -rf build-docs
doxygen docs/Doxyfile
grep -q 'Plans memory without touching a device' build-docs/html/backend_8h.html ||
    { echo "lint.sh: build-docs/html/backend_8h.html lacks the text of ps_backend_memory_plan: does scripts/doxygen_filter.py work?" >&2; exit 1; }
