#!/usr/bin/env bash
# The submit helper fills templates from a job's plan, shows without writing, and refuses what cannot work. Needs no Slurm.
set -euo pipefail
source "$(dirname "$0")/jobs.sh"

# expect STATUS TEXT COMMAND...: the command ends with the status and says the text.
expect() {
    local status=0 said
    said=$("${@:3}" 2>&1 </dev/null) || status=$?
    [ "$status" -eq "$1" ] || fail "${*:3}: exit status $status, expected $1: $said"
    [[ $said == *"$2"* ]] || fail "${*:3}: expected '$2' in: $said"
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
recordings . 3
submit=$PTYSERIES_HOME/slurm/submit.sh

expect 0 "#SBATCH --ntasks-per-node=3" "$submit" --dry-run job.json # three frames, no fourth rank
expect 0 "#SBATCH --gpus-per-node=3" "$submit" --dry-run --template gpu_node job.json
submit_for=("$submit" --time 7 --dry-run) # measures nothing
expect 0 "#SBATCH --time=7" "${submit_for[@]}" job.json
expect 0 "#SBATCH --nodes=2" "${submit_for[@]}" --nodes 2 --template gpu_nodes job.json
expect 0 "#SBATCH --partition=long" "${submit_for[@]}" --partition long job.json
expect 0 "#SBATCH --constraint=a100" "${submit_for[@]}" --sbatch --constraint=a100 job.json
expect 0 "#SBATCH --signal=B:USR1@60" "${submit_for[@]}" --warn 60 job.json
expect 0 "LAUNCHER=mpirun" "${submit_for[@]}" --launcher mpirun job.json
expect 0 "JOB=$(realpath job.json)" "${submit_for[@]}" job.json
[ ! -e job.sbatch ] || fail "a dry run wrote a script"

expect 2 "say --yes" "$submit" job.json
expect 2 "no job file" "$submit" missing.json
expect 2 "unknown option '--node'" "$submit" --node 2 job.json
expect 2 "no template 'gpu'" "$submit" --template gpu job.json
sed 's/"methods"/"method"/' job.json >wrong.json
expect 2 "/method" "$submit" --yes wrong.json
echo "#!/bin/bash" >job.sbatch
expect 2 "not one of mine" "$submit" --yes job.json
