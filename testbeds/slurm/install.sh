#!/bin/sh
# Slurm and MUNGE from Debian, for the tests of the Slurm driver. Says why when they cannot be had.
set -eu
has() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }
for program in sbatch squeue sinfo scontrol scancel sacct slurmctld slurmd munged; do
    has "$program" || missing="${missing-} $program"
done
[ -n "${missing-}" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
    echo "testbed: no$missing, and only root on Debian can install them here: Slurm tests are skipped" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq && apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null || {
    echo "testbed: Slurm could not be installed: Slurm tests are skipped" >&2
    exit 0
}
# The packages bring services for a real cluster; the tests start daemons of their own.
if [ -d /run/systemd/system ]; then
    systemctl disable --now slurmctld slurmd munge >/dev/null 2>&1 || true
fi
