# A real Slurm for the tests, sourced by each of them: munged, slurmctld and one or two slurmd, all inside one temporary folder,
# on free ports, without touching the system's own configuration. It goes away with the shell that started it. Several may run at once:
# job ids come from the port, for MPI names its shared memory after the node and the job.
#   cluster_start 1|2   nodes of 2 cores and 2 make-believe GPUs each; two nodes live in UTS namespaces with host names of their own
#   $cluster_dir        the folder; $cluster_dir/work is for the test
# shellcheck shell=bash

# slurmd must be started by root; a test run by someone who may sudo without a password starts again as root.
if [ "$(id -u)" -ne 0 ] && sudo -n true 2>/dev/null; then exec sudo -n bash "$0" "$@"; fi

cluster_skip() {
    echo "skipped: $1"
    exit 77
}

cluster_require() {
    local program
    for program in munged slurmctld slurmd sbatch srun unshare; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || cluster_skip "$program is not installed (scripts/setup.sh --slurm installs it)"
    done
    [ "$(id -u)" -eq 0 ] || cluster_skip "slurmd must be started by root"
}

cluster_port_is_taken() { awk '{print $2}' /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -qi ":$(printf %04x "$1")$"; }

# Prints a port p such that p ... p+2 (controller, two nodes) are free; they are taken while the lock of cluster_start is held.
cluster_find_ports() {
    local port
    port=$((10000 + RANDOM % 20000))
    while cluster_port_is_taken "$port" || cluster_port_is_taken $((port + 1)) || cluster_port_is_taken $((port + 2)); do
        port=$((port + 3))
    done
    echo "$port"
}

cluster_write_configuration() {
    local nodes=$1 port=$2 host
    host=$(hostname -s)
    cat >"$SLURM_CONF" <<CONF
ClusterName=ptyseries_test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
FirstJobId=$((port * 100))
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster_dir/munge.socket,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
SwitchType=switch/none
StateSaveLocation=$cluster_dir/state
SlurmdSpoolDir=$cluster_dir/spool/%n
SlurmctldPidFile=$cluster_dir/slurmctld.pid
SlurmdPidFile=$cluster_dir/slurmd.%n.pid
SlurmctldLogFile=$cluster_dir/log/slurmctld.log
SlurmdLogFile=$cluster_dir/log/slurmd.%n.log
SlurmdParameters=config_overrides
TmpFS=$cluster_dir/tmp/%n
KillWait=5
GresTypes=gpu
NodeName=n[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=2 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    echo "NodeName=n[1-$nodes] Name=gpu File=$cluster_dir/nvidia[0-1]" >"$cluster_dir/gres.conf"
}

cluster_start_munge() {
    dd if=/dev/urandom of="$cluster_dir/munge.key" bs=128 count=1 status=none
    chmod 600 "$cluster_dir/munge.key"
    munged --socket="$cluster_dir/munge.socket" --key-file="$cluster_dir/munge.key" --pid-file="$cluster_dir/munged.pid" \
        --log-file="$cluster_dir/log/munged.log" --seed-file="$cluster_dir/munge.seed"
}

cluster_start_nodes() {
    local node
    for node in $(seq -f 'n%g' "$1"); do
        mkdir -p "$cluster_dir/spool/$node" "$cluster_dir/tmp/$node"
        unshare --uts sh -c "hostname $node && exec slurmd -f '$SLURM_CONF' -N $node"
    done
}

cluster_wait_idle() {
    local nodes=$1
    for _ in $(seq 150); do
        [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c '^idle$')" -eq "$nodes" ] && return
        sleep 0.2
    done
    echo "the Slurm nodes did not become idle" >&2
    cluster_show_logs
    return 1
}

cluster_start() {
    cluster_require
    export PATH=$PATH:/usr/sbin:/sbin
    cluster_dir=$(mktemp -d "${TMPDIR:-/tmp}/ptyseries-slurm.XXXXXX")
    chmod 755 "$cluster_dir"
    mkdir -p "$cluster_dir"/{state,spool,log,tmp,work}
    for gpu in 0 1; do mknod "$cluster_dir/nvidia$gpu" c 1 3; done
    export SLURM_CONF=$cluster_dir/slurm.conf
    trap cluster_stop EXIT
    trap 'exit 143' TERM INT HUP
    exec {cluster_lock}>"${TMPDIR:-/tmp}/ptyseries-slurm.lock"
    flock "$cluster_lock"
    cluster_write_configuration "$1" "$(cluster_find_ports)"
    cluster_start_munge
    slurmctld -f "$SLURM_CONF"
    cluster_start_nodes "$1"
    cluster_wait_idle "$1"
    flock --unlock "$cluster_lock" # the daemons have inherited the descriptor
}

cluster_show_logs() { tail -n 30 "$cluster_dir"/log/slurm*.log >&2 || true; }

# Ids of all processes that carry this cluster's configuration in their environment: daemons, job steps, and what jobs started.
cluster_processes() {
    local file
    for file in /proc/[0-9]*/environ; do
        if tr '\0' '\n' 2>/dev/null <"$file" | grep -qxF "SLURM_CONF=$SLURM_CONF"; then
            basename "$(dirname "$file")"
        fi
    done | grep -vxF -e $$ -e "$BASHPID" || true
}

cluster_kill() {
    local signal=$1 process
    for process in $(cluster_processes); do kill "-$signal" "$process" 2>/dev/null || true; done
}

cluster_stop() {
    local status=$?
    trap - EXIT TERM INT HUP
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || cluster_show_logs
    cluster_kill TERM
    for _ in $(seq 20); do
        [ -n "$(cluster_processes)" ] || break
        sleep 0.1
    done
    cluster_kill KILL
    rm -rf "$cluster_dir"
    exit "$status"
}
