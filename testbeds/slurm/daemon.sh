#!/bin/sh
# One daemon of the cluster in BASE: daemon.sh BASE start|stop|kill munged|slurmctld|slurmd.NODE
set -eu
PATH="$PATH:/usr/sbin:/sbin"
base=$1 what=$2 name=$3
export SLURM_CONF="$base/etc/slurm.conf"
pid_file="$base/run/$name.pid"

alive() { # a zombie under a first process that does not reap is dead
    [ -r "/proc/$1/stat" ] && ! grep -q '^[0-9]* (.*) Z' "/proc/$1/stat"
}

pid=$(cat "$pid_file" 2>/dev/null || true)
# A pid file outlives a reboot: the process must be what the file is about.
if [ -n "$pid" ] && { ! alive "$pid" || ! grep -qz "${name%%.*}" "/proc/$pid/cmdline"; }; then
    pid=
fi

case $what in
start)
    [ -z "$pid" ] || exit 0
    rm -f "$pid_file"
    case $name in
    munged)
        munged --force --socket="$base/munge/socket" --key-file="$base/munge/key" \
            --pid-file="$pid_file" --log-file="$base/log/munged.log" --seed-file="$base/munge/seed" \
            >/dev/null 2>&1
        ;;
    slurmctld) slurmctld ;;
    slurmd.*) mkdir -p "$base/spool/${name#slurmd.}" && slurmd -N "${name#slurmd.}" ;;
    esac
    ;;
stop | kill)
    [ -n "$pid" ] || exit 0
    [ "$what" = kill ] && signal=KILL || signal=TERM
    kill -s "$signal" "$pid" 2>/dev/null || true
    tries=0
    while alive "$pid"; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || kill -s KILL "$pid" 2>/dev/null || true
        sleep 0.05
    done
    rm -f "$pid_file"
    ;;
*)
    echo "start, stop or kill, not $what" >&2
    exit 2
    ;;
esac
