#!/usr/bin/env bash
# Every template, with both launchers, submitted on two nodes and finished with the right output; ranks stand where they should.
set -euo pipefail
source "$(dirname "$0")/cluster.sh"
source "$(dirname "$0")/jobs.sh"

# A program in front of the real one that notes where each rank runs and what it sees.
write_recorder() {
    cat >recorder <<EOF
#!/bin/bash
echo "\$(hostname) \${OMPI_COMM_WORLD_LOCAL_RANK:-\$SLURM_LOCALID} \${CUDA_VISIBLE_DEVICES:-none} \${OMPI_MCA_btl_vader_backing_directory:-none}" >>"$PWD/\$SLURM_JOB_ID.ranks"
exec "$program" "\$@"
EOF
    chmod +x recorder
}

job_named() { sed "s/out.h5/$1.h5/" small/job.json >"small/$1.json" && echo "small/$1.json"; }

# with TEMPLATE OPTIONS...: submits the job of that template and notes its id.
with() {
    local template=$1
    shift
    jobs[$template]=$(PTYSERIES=$PWD/recorder submit --launcher "$launcher" --template "$template" "$@")
}

submit_all() {
    printf '# two runs\noutput.file=sweep_1.%s.h5\noutput.file=sweep_2.%s.h5 compute.precision=fast\n' "$launcher" "$launcher" >sweep.txt
    with cpu --ranks-per-node 2 "$(job_named "cpu.$launcher")"
    with gpu_node --ranks-per-node 2 "$(job_named "gpu_node.$launcher")"
    with gpu_nodes --ranks-per-node 2 --nodes 2 --scratch "$cluster_dir/tmp" "$(job_named "gpu_nodes.$launcher")"
    with sweep --ranks-per-node 2 --sweep sweep.txt "$(job_named "sweep.$launcher")"
    with array --at-once 2 "$(job_named "array_1.$launcher")" "$(job_named "array_2.$launcher")"
}

expect_ranks() {
    local file=${jobs[$1]}.ranks
    [ "$(sort "$file")" = "$2" ] || fail "template $1, $launcher: ranks were
$(sort "$file")
expected
$2"
}

check_places() {
    local scratch=$cluster_dir/tmp/ptyseries.${jobs[gpu_nodes]}
    expect_ranks cpu "$(printf '%s\n' "n1 0 none none" "n1 1 none none")"
    expect_ranks gpu_nodes "$(printf '%s\n' "n1 0 0,1 $scratch" "n1 1 0,1 $scratch" "n2 0 0,1 $scratch" "n2 1 0,1 $scratch")"
    grep -aq "SLURM_JOB_ID=${jobs[gpu_nodes]}" "small/gpu_nodes.$launcher.h5" || fail "Slurm's variables are not in the provenance"
    [ ! -e "$scratch" ] || fail "the scratch folder $scratch is still there"
}

check_ends() {
    local job
    for job in "${jobs[cpu]}" "${jobs[gpu_node]}" "${jobs[gpu_nodes]}" "${jobs[sweep]}" "${jobs[array]}_1" "${jobs[array]}_2"; do
        ends_as COMPLETED 120 "$job"
        grep -q "\[job $job, restart 0\] exit status 0" "small/ptyseries.$job.log" || fail "job $job has no log of its end"
    done
}

run_all_with() {
    launcher=$1
    submit_all
    check_ends
    same small/reference.h5 small/{cpu,gpu_node,gpu_nodes,array_1,array_2}."$launcher".h5 small/sweep_{1,2}."$launcher".h5
    check_places
}

cluster_start 2
cd "$cluster_dir/work"
declare -A jobs=()
series small 4
write_recorder
run_all_with srun
run_all_with mpirun
