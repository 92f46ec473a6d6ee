#!/bin/sh
# A Slurm cluster of its own on the loopback: start.sh BASE [FIRST_PORT]
#
# BASE is an empty or earlier folder; everything lies below it. NODES (3) nodes n0, n1, ... of 16
# processors, 64 GB and 8 fake GPUs each. Memory limits are enforced where this user may make
# cgroups (version 1); BASE/cgroup then exists. FRESH=0 keeps the controller's state of before.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
base=$1 port=${2:-16817} nodes=${NODES:-3} last=$((${NODES:-3} - 1))
here=$(cd "$(dirname "$0")" && pwd)
host=$(hostname -s)
mkdir -p "$base"
chmod 755 "$base"
for part in etc run log state spool dev munge; do mkdir -p "$base/$part"; done

gpu=0
while [ "$gpu" -lt 8 ]; do
    # Device files are needed for CUDA_VISIBLE_DEVICES; plain files give nodes that run jobs all the same.
    [ -e "$base/dev/gpu$gpu" ] || mknod "$base/dev/gpu$gpu" c 1 3 2>/dev/null || : >"$base/dev/gpu$gpu"
    gpu=$((gpu + 1))
done

enforce=no
trial="/sys/fs/cgroup/memory/verderer-trial-$$"
if mkdir "$trial" 2>/dev/null; then
    [ -w "$trial/memory.limit_in_bytes" ] && enforce=yes
    rmdir "$trial"
fi
if [ $enforce = yes ]; then
    : >"$base/cgroup"
    tracking="ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup"
else
    rm -f "$base/cgroup"
    tracking="ProctrackType=proctrack/linuxproc
TaskPlugin=task/none"
fi
cat >"$base/etc/cgroup.conf" <<END
CgroupPlugin=cgroup/v1
CgroupAutomount=no
ConstrainRAMSpace=$enforce
ConstrainSwapSpace=no
ConstrainCores=no
ConstrainDevices=no
END
echo "NodeName=n[0-$last] Name=gpu Type=h100 File=$base/dev/gpu[0-7]" >"$base/etc/gres.conf"
cat >"$base/etc/slurm.conf" <<END
ClusterName=testbed
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$base/munge/socket
SlurmctldPort=$port
SlurmctldPidFile=$base/run/slurmctld.pid
SlurmdPidFile=$base/run/slurmd.%n.pid
SlurmctldLogFile=$base/log/slurmctld.log
SlurmdLogFile=$base/log/slurmd.%n.log
SlurmdSpoolDir=$base/spool/%n
StateSaveLocation=$base/state
$tracking
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=5
SlurmdParameters=config_overrides
MessageTimeout=${MESSAGE_TIMEOUT:-10}
SlurmdTimeout=${SLURMD_TIMEOUT:-20}
KillWait=5
MinJobAge=${MIN_JOB_AGE:-300}
ReturnToService=2
MpiDefault=none
GresTypes=gpu
NodeName=n[0-$last] NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1))-$((port + nodes)) CPUs=16 Boards=1 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000 Gres=gpu:h100:8 Feature=avx512,fast State=UNKNOWN
PartitionName=main Nodes=n[0-$last] Default=YES DefMemPerCPU=256 MaxTime=INFINITE State=UP
PartitionName=short Nodes=n0 DefMemPerCPU=256 MaxTime=10 State=UP
PartitionName=closed Nodes=n0 State=DOWN
END

[ -e "$base/munge/key" ] || dd if=/dev/urandom of="$base/munge/key" bs=64 count=1 2>/dev/null
chmod 400 "$base/munge/key"
"$here/daemon.sh" "$base" start munged
[ "${FRESH:-1}" = 0 ] || rm -rf "$base/state" && mkdir -p "$base/state"
"$here/daemon.sh" "$base" start slurmctld
node=0
while [ "$node" -lt "$nodes" ]; do
    "$here/daemon.sh" "$base" start "slurmd.n$node"
    node=$((node + 1))
done

export SLURM_CONF="$base/etc/slurm.conf"
tries=0
until [ "$(sinfo -h -N -p main -t idle -o %N 2>/dev/null | wc -l)" = "$nodes" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 150 ]; then
        echo "the nodes did not become idle:" >&2
        sinfo -N -l >&2 || true
        tail -n 20 "$base"/log/*.log >&2
        exit 1
    fi
    sleep 0.1
done

# An idle node may still lose its first job on a busy machine (JobLaunchFailure): prove each one.
node=0
while [ "$node" -lt "$nodes" ]; do
    tries=0
    until sbatch --quiet --wait --nodelist="n$node" --output=/dev/null --wrap=true; do
        tries=$((tries + 1))
        if [ "$tries" -gt 10 ]; then
            echo "n$node runs no job:" >&2
            tail -n 20 "$base"/log/*.log >&2
            exit 1
        fi
        scontrol update "nodename=n$node" state=resume 2>/dev/null || true
        sleep 0.5
    done
    node=$((node + 1))
done
