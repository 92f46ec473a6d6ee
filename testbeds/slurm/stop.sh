#!/bin/sh
# Stop the cluster in BASE and everything that its jobs left: stop.sh BASE
set -u
base=$1
here=$(cd "$(dirname "$0")" && pwd)
export SLURM_CONF="$base/etc/slurm.conf"
[ -d "$base/run" ] || exit 0
for file in "$base"/run/slurmd.*.pid "$base"/run/slurmctld.pid; do
    name=$(basename "$file" .pid)
    [ -e "$file" ] && "$here/daemon.sh" "$base" stop "$name"
done
# Jobs and their keepers, the slurmstepd, outlive slurmd on purpose: they are known by our folder.
for process in /proc/[0-9]*; do
    { tr '\0' '\n' <"$process/environ" | grep -qx "SLURM_CONF=$base/etc/slurm.conf"; } 2>/dev/null || continue
    if grep -q '^slurmstepd' "$process/comm" 2>/dev/null ||
        { tr '\0' '\n' <"$process/environ" | grep -q '^SLURM_JOB_ID='; } 2>/dev/null; then
        kill -s KILL "${process#/proc/}" 2>/dev/null
    fi
done
"$here/daemon.sh" "$base" stop munged
if [ -e "$base/cgroup" ]; then
    for tree in /sys/fs/cgroup/*/slurm_n*; do
        [ -d "$tree" ] && find "$tree" -depth -type d -exec rmdir {} \; 2>/dev/null
    done
fi
exit 0
