#!/usr/bin/env bash
# Fills a batch template from a job file, shows it, and submits it once you agree.
#   usage: slurm/submit.sh [OPTIONS] JOB.json [JOB.json ...]
#     --template NAME      cpu, gpu_node, gpu_nodes, sweep or array; otherwise array for several jobs, sweep with --sweep, cpu for a
#                          job on the cpu backend or a build without cuda, else gpu_node
#     --sweep FILE         one run a line: settings as for ptyseries run --set, output.file among them
#     --nodes N            nodes; --ranks-per-node N  ranks on each; --gpus-per-node N; --cores-per-rank N
#     --time LIMIT         as sbatch takes it, otherwise three times the estimate of ptyseries check --time and ten minutes, or the template's
#                          where this machine has not the backend to measure; --mem SIZE  a node, otherwise from the plan
#     --warn SECONDS       how long before the time limit the run is told to stop
#     --partition NAME, --account NAME, --name NAME
#     --at-once N          tasks of an array that run at the same time
#     --launcher NAME      srun or mpirun
#     --max-restarts N     how often an interrupted run goes back into the queue
#     --scratch FOLDER     node-local folder for temporary files
#     --sbatch OPTION      any other sbatch option, --constraint=a100 say; may be repeated
#     --dry-run            show, submit nothing, write nothing
#     --yes                do not ask
# The filled script stands beside the (first) job file as JOB.sbatch; submitting it again goes on where the run stopped.
set -euo pipefail

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${PTYSERIES:-$home/build/ptyseries}
mark="# Filled by slurm/submit.sh"
declare -A option=()
extra=() jobs=() script=""

fail() {
    printf 'submit.sh: %s\n' "$1" >&2
    exit "${2:-2}"
}

show_help() { sed -n '2,/^set -euo/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            -h | --help) show_help && exit 0 ;;
            --yes | --dry-run) option[${1#--}]=yes ;;
            --sbatch) extra+=("${2:?--sbatch needs a value}") && shift ;;
            --template | --sweep | --nodes | --ranks-per-node | --gpus-per-node | --cores-per-rank | --time | --mem | --warn | \
                --partition | --account | --name | --at-once | --launcher | --max-restarts | --scratch)
                option[${1#--}]=${2:?$1 needs a value} && shift ;;
            -*) fail "unknown option '$1'; see slurm/submit.sh --help" ;;
            *) [ -f "$1" ] || fail "no job file '$1'" && jobs+=("$(realpath "$1")") ;;
        esac
        shift
    done
    [ ${#jobs[@]} -gt 0 ] || fail "no job file given; see slurm/submit.sh --help"
}

# plan_value KEY: a number or text of the plan in $plan, empty when it has none.
plan_value() { sed -n "s/.*\"$1\":[[:space:]]*\"\{0,1\}\([^\",}]*\).*/\1/p" <<<"$plan" | head -n 1; }

# Checks every job, and measures where the time limit is to come from that; the plan that stands in the end is that of the job with the
# most frames.
make_plan() {
    local job text frames=-1 measure=()
    [ -n "${option[time]:-}" ] || measure=(--time)
    for job in "${jobs[@]}"; do
        text=$("$program" check --json "${measure[@]}" "$job" | tr ',{}' '\n') || fail "ptyseries check refuses $job" $?
        if [ "$(plan="$text" plan_value n_frames)" -gt "$frames" ]; then
            plan=$text
            frames=$(plan_value n_frames)
        fi
    done
}

# The job says cpu, or leaves it open and the program has no other backend. That this machine has no GPU says nothing about the nodes.
wants_cpu() {
    [[ $(plan_value backend) == cpu* ]] || return 1
    [ -z "$(plan_value backend_note)" ] || "$program" --version | grep -q 'cuda: not built'
}

choose_template() {
    template=${option[template]:-}
    if [ -n "$template" ]; then
        [ -f "$home/slurm/$template.sbatch" ] || fail "no template '$template'; there are cpu, gpu_node, gpu_nodes, sweep, array"
    elif [ ${#jobs[@]} -gt 1 ]; then
        template=array
    elif [ -n "${option[sweep]:-}" ]; then
        template=sweep
    elif wants_cpu; then
        template=cpu
    else
        template=gpu_node
    fi
    [ ${#jobs[@]} -eq 1 ] || [ "$template" = array ] || fail "template $template takes one job file; got ${#jobs[@]}"
    [ "$template" != sweep ] || [ -f "${option[sweep]:-}" ] || fail "template sweep needs --sweep FILE"
    script=$(<"$home/slurm/$template.sbatch")
}

# set_line PREFIX LINE: LINE takes the place of the line that starts with PREFIX; status 1 when there is none.
set_line() {
    local line found=1 filled=""
    while IFS= read -r line; do
        if [[ $line == "$1"* ]]; then
            line=$2
            found=0
        fi
        filled+=$line$'\n'
    done <<<"$script"
    script=${filled%$'\n'}
    return "$found"
}

add_directive() { set_line "#SBATCH --job-name=" "$(grep '^#SBATCH --job-name=' <<<"$script")"$'\n'"#SBATCH $1"; }

set_directive() {
    [ -n "$2" ] || return 0
    set_line "#SBATCH --$1=" "#SBATCH --$1=$2" || set_line "##SBATCH --$1=" "#SBATCH --$1=$2" || add_directive "--$1=$2"
}

set_variable() { [ -z "$2" ] || set_line "$1=" "$1=$(printf %q "$2")"; }

directive() { sed -n "s/^#SBATCH --$1=//p" <<<"$script"; }

drop_directive() { script=$(grep -v "^#SBATCH --$1=" <<<"$script"); }

# More ranks than frames would only wait, so nodes and ranks follow the number of frames unless they were asked for.
fill_sizes() {
    local frames ranks nodes
    frames=$(plan_value n_frames)
    set_directive cpus-per-task "${option[cores-per-rank]:-}"
    ranks=${option[ranks-per-node]:-$(directive ntasks-per-node)}
    [ -n "${option[ranks-per-node]:-}" ] || [ "$ranks" -le "$frames" ] || ranks=$frames
    nodes=$(directive nodes)
    [ $((nodes * ranks)) -le "$frames" ] || nodes=$(((frames + ranks - 1) / ranks))
    set_directive ntasks-per-node "$ranks"
    set_directive nodes "${option[nodes]:-$nodes}"
    set_directive mem "${option[mem]:-$(memory_of_node "$ranks")}"
    fill_gpus "$ranks"
}

# Of the host's memory, on one rank: what a run takes that nothing bounds but the job's own budget.
rank_mebibytes() {
    local counted="counter_bytes frame_bytes host_bytes" name all=0
    [ -z "$(plan_value unbounded_host_bytes)" ] || counted=unbounded_host_bytes
    [ -z "$(plan_value memory_bytes)" ] || counted=memory_bytes
    [ "$(plan_value on_device)" != true ] || [ "$counted" = unbounded_host_bytes ] || counted=host_bytes
    for name in $counted; do all=$((all + $(mebibytes "$name"))); done
    echo "$all"
}

# A quarter more than the plan says, and half a GiB a rank for libraries.
memory_of_node() { echo "$((($(rank_mebibytes) * 5 / 4 + 512) * $1))M"; }

fill_gpus() {
    local gpus=${option[gpus-per-node]:-}
    [ -n "$gpus" ] || [ -z "$(directive gpus-per-node)" ] || gpus=$1
    if [ "$gpus" = 0 ]; then
        drop_directive gpus-per-node
    else
        set_directive gpus-per-node "$gpus"
    fi
}

# Minutes; nothing when nothing was measured. A sweep does the job once a line.
time_limit() {
    local runs=1
    [ -n "$(plan_value period_seconds)" ] || return 0
    [ "$template" != sweep ] || runs=$(grep -c . "${option[sweep]}")
    awk -v prepare="$(plan_value prepare_seconds)" -v frame="$(plan_value period_seconds)" -v frames="$(plan_value n_frames)" -v runs="$runs" \
        -v ranks=$(($(directive nodes) * $(directive ntasks-per-node))) \
        'BEGIN { printf "%d\n", 10 + runs * 3 * (prepare + frame * int((frames + ranks - 1) / ranks)) / 60 + 1 }'
}

summary() {
    printf '# %s frames on %s x %s ranks; %s MiB a rank; output %s MiB; backend %s' "$(plan_value n_frames)" "$(directive nodes)" \
        "$(directive ntasks-per-node)" "$(rank_mebibytes)" "$(mebibytes output_bytes)" "$(plan_value backend)"
}

mebibytes() { echo $((($(plan_value "$1") + 1048575) >> 20)); }

fill_template() {
    local item
    fill_sizes
    set_directive time "${option[time]:-$(time_limit)}"
    set_directive partition "${option[partition]:-}"
    set_directive account "${option[account]:-}"
    set_directive job-name "${option[name]:-}"
    [ -z "${option[warn]:-}" ] || set_directive signal "B:USR1@${option[warn]}"
    for item in "${extra[@]}"; do add_directive "$item"; done
    set_variable PTYSERIES_HOME "$home"
    set_variable PTYSERIES "$program"
    set_variable LAUNCHER "${option[launcher]:-}"
    set_variable MAX_RESTARTS "${option[max-restarts]:-}"
    set_variable SCRATCH "${option[scratch]:-}"
    case $template in
        array) set_variable JOBS "$list" && set_directive array "1-${#jobs[@]}${option[at-once]:+%${option[at-once]}}" ;;
        sweep) set_variable JOB "${jobs[0]}" && set_variable SWEEP "$(realpath "${option[sweep]}")" ;;
        *) set_variable JOB "${jobs[0]}" ;;
    esac
    set_line '#!/bin/bash' '#!/bin/bash'$'\n'"$mark"$'\n'"$(summary)"
}

agree() {
    local answer
    [ -z "${option[yes]:-}" ] || return 0
    [ -t 0 ] || fail "not a terminal: say --yes to submit, --dry-run to look"
    read -r -p "Submit this? [y/N] " answer
    [[ $answer == [yY]* ]] || fail "nothing was submitted" 1
}

write_and_submit() {
    local target=${jobs[0]%.json}.sbatch
    [ ! -e "$target" ] || grep -qxF "$mark" "$target" || fail "$target exists and is not one of mine: move it away first"
    [ "$template" != array ] || printf '%s\n' "${jobs[@]}" >"$list"
    printf '%s\n' "$script" >"$target"
    echo "written: $target"
    cd "$(dirname "$target")"
    sbatch "$(basename "$target")"
}

parse_arguments "$@"
list=${jobs[0]%.json}.jobs.txt
make_plan
choose_template
fill_template
printf '%s\n' "$script"
[ -z "${option[dry-run]:-}" ] || exit 0
agree
write_and_submit
