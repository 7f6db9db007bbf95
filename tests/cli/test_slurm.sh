#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# contrib/slurm/sweep.sbatch under a real Slurm of one node, started here: an array of 8, one task
# cancelled while it runs and requeued, one submitted again; merged to the bytes of one process.
# Skipped without slurm-wlm and munge (Debian), which are installed by hand.
. "${top_srcdir:-.}/tests/cli/common.sh"
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd sbatch squeue scontrol scancel; do
    command -v $program >/dev/null || {
        echo "skipped: no $program"
        exit 77
    }
done
cd "$plain_folder" || exit 99 # slurm.conf accepts no blanks
chmod 755 . # munge wants its socket reachable
daemons='' pid=''
trap 'for pid in $daemons; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
    cd /; rm -rf "$work" "$plain_folder"' EXIT

# --- a cluster of one --------------------------------------------------------------------------
host=$(hostname -s)
user=$(id -un)
port=$((20000 + $$ % 20000))
dd if=/dev/urandom of=munge.key bs=128 count=1 2>/dev/null
chmod 600 munge.key
mkdir state spool
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$plain_folder/munge.socket
StateSaveLocation=$plain_folder/state
SlurmdSpoolDir=$plain_folder/spool
SlurmctldPidFile=$plain_folder/slurmctld.pid
SlurmdPidFile=$plain_folder/slurmd.pid
SlurmctldLogFile=$plain_folder/slurmctld.log
SlurmdLogFile=$plain_folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
SLURM_CONF=$plain_folder/slurm.conf
DRAFTSCOPE=$plain_folder/program
export SLURM_CONF DRAFTSCOPE
munged --foreground --force --key-file="$plain_folder/munge.key" --socket="$plain_folder/munge.socket" \
    --pid-file="$plain_folder/munged.pid" --log-file="$plain_folder/munged.log" --seed-file="$plain_folder/munge.seed" \
    >munged.out 2>&1 &
munge=$! daemons=$!
wait_until $munge test -S munge.socket
slurmctld -D >slurmctld.out 2>&1 &
controller=$! daemons="$! $daemons"
slurmd -D >slurmd.out 2>&1 &
daemons="$! $daemons"
idle() {
    [ "$(sinfo -h -o %t 2>/dev/null)" = idle ]
}
if ! wait_until $controller idle; then
    echo "skipped: Slurm does not start here"
    tail -n 5 munged.log slurmctld.log slurmd.log 2>/dev/null
    exit 77
fi

# --- an array of 8 -----------------------------------------------------------------------------
i=0
while [ $i -lt 8 ]; do
    cat "$top/traces/sample/rag.jsonl"
    i=$((i + 1))
done >many.jsonl
check "a trace" "$draftscope" trace import --tokenizer "$top/traces/sample/tokenizer.json" \
    many.jsonl -o many.dst
run="many.dst --method llma --n 1:4 --num-speculative-tokens 2:16:2 --semantics paper,code --evaluate loop"
slow="--block 2 --request-block 8"
# Lists of words:
# shellcheck disable=SC2086
check "one process" "$draftscope" sweep $run -o whole.tsv
submit() { # array: prints the job's number
    # shellcheck disable=SC2086
    sbatch --parsable --array="$1" --output="$plain_folder/task.%a" "$top/contrib/slurm/sweep.sbatch" 8 \
        shard $run $slow
}
state() { # of task 3
    scontrol show job "${job}_3" -o | sed -n 's/.* JobState=\([A-Z]*\).*/\1/p'
}
in_state() {
    [ "$(state)" = "$1" ]
}
rows() {
    grep -c '^[0-9]' shard.3-of-8.part 2>/dev/null
}
# What the tasks run. Task 3, the first time, is stopped where a few of its cells are finished, and
# stays so until it is cancelled: however fast the machine, there is something to go on from.
cat >program <<END
#!/bin/sh
if [ "\$SLURM_ARRAY_TASK_ID" = 3 ] && mkdir started 2>/dev/null; then
    while :; do
        "$draftscope" "\$@" &
        until [ "\$(grep -c '^[0-9]' shard.3-of-8.part 2>/dev/null || :)" -ge 4 ] 2>/dev/null; do
            [ ! -e shard.3-of-8 ] || break
        done
        kill -STOP \$! 2>/dev/null && [ ! -e shard.3-of-8 ] && break
        kill -CONT \$! 2>/dev/null
        wait
        rm -f shard.3-of-8 # It was faster: again.
    done
    touch started/held
    wait
    exit 1
fi
exec "$draftscope" "\$@"
END
chmod 755 program
job=$(submit 1-8)
wait_until $controller test -e started/held
check "task 3 runs" [ -e started/held ]
scancel "${job}_3"
wait_until $controller in_state CANCELLED
check "task 3 is cancelled" in_state CANCELLED
check "it has no shard yet" [ ! -e shard.3-of-8 ]
before=$(rows)
check "finished cells are kept: $before rows" [ "$before" -ge 4 ]
# slurmd refuses what it is sent in the second in which it killed the task ("Job credential
# revoked"), and the task then counts as failed: which is why Slurm lets a requeued one wait for two
# minutes. A few seconds will do; a task that was refused all the same is requeued again.
sleep 3
check "it is requeued" scontrol requeue "${job}_3"
refused=0
ends() {
    case $(state) in
    COMPLETED) return 0 ;;
    PENDING) sleep 2 && scontrol update JobId="${job}_3" StartTime=now >/dev/null 2>&1 ;;
    FAILED)
        refused=$((refused + 1))
        [ $refused -lt 4 ] && sleep 3 && scontrol requeue "${job}_3" >/dev/null 2>&1
        ;;
    esac
    false
}
wait_until $controller ends
check "and ends well" in_state COMPLETED
check "it went on from where it was" grep 'going on after [1-9][0-9]* of [0-9]* cells' task.3
ended() {
    [ -z "$(squeue -h)" ]
}
wait_until $controller ended
check "all shards are there" [ "$(find . -name 'shard.*-of-8' | wc -l)" = 8 ]
check "no part is left" [ "$(find . -name 'shard.*.part' | wc -l)" = 0 ]

# Submitted again: a finished shard stays as it is, a lost one comes back the same.
cp shard.5-of-8 kept
rm shard.5-of-8
touch -d '2001-01-01' shard.6-of-8
submit 5-6 >/dev/null
wait_until $controller test -e shard.5-of-8
wait_until $controller ended
check "a lost shard comes back the same" cmp kept shard.5-of-8
check "a finished shard is left alone" [ shard.6-of-8 -ot many.jsonl ]

check "merge" "$draftscope" merge shard.*-of-8 -o merged.tsv
check "merged = one process" cmp whole.tsv merged.tsv

[ $failed = 0 ] || tail -n 40 slurmctld.log slurmd.log task.3
summary
