#!/usr/bin/env bash
# Shell scripts, batch templates included, pass shellcheck.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z '*.sh' '*.sbatch' .ci/run | xargs -0 shellcheck --severity=warning --external-sources --source-path=.:SCRIPTDIR --shell=bash
