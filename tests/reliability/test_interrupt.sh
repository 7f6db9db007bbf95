#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A command ends after the first signal wherever it waits: for a slow standard input, a FIFO, a full
# pipe, the weights of a model or a hanging gnuplot, which ends with it. Then closed standard streams,
# a trace that shrinks while it is read, and a file named gnuplot in the current folder.
# The programs of the tests are words in quotes.
# shellcheck disable=SC2016
# A signal that the parent ignores (nohup) would be ignored by every command, which a shell cannot undo.
if [ -z "${SIGNALS_RESET:-}" ] && env --default-signal=HUP true 2>/dev/null; then
    SIGNALS_RESET=yes exec env --default-signal=HUP,INT,TERM sh "$0"
fi
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
before=0 # hundredths of a second of processor time after which it computes what it will be stopped in
most=100 # the same that its end may take

handles_signals() {
    grep -q '^SigCgt:.*[2367abef]$' /proc/$process/status
}
has_worked() {
    now=$(processor_time $process) && [ "$now" -ge $before ]
}
# Starts a command that waits for ever, ends it with a signal and compares its exit code.
interrupt() { # what it waits for, signal, code, command...
    what=$1 signal=$2 code=$3
    shift 3
    "$@" >out 2>err &
    process=$!
    [ ! -d /proc/$$ ] || { wait_until $process handles_signals && wait_until $process has_worked; }
    sleep 0.5 # now it waits for what it will wait for
    if ! kill -0 $process 2>/dev/null; then
        wait $process
        not_ok "$what: it did not wait: $(cat err)"
        return
    fi
    stop $process "$signal"
    check "$what, SIG$signal: exit code $code, not $got" test $got = "$code"
    check "$what, SIG$signal: ended after $spent hundredths of a second" test $spent -le $most
}

# The same for a command that reads from a pipe which stays open and empty.
mkfifo pipe fifo
sleep 600 >pipe &
holder=$!
trap 'kill $holder 2>/dev/null; rm -rf "$work" "$plain_folder"' EXIT
interrupt_stdin() { # what, signal, code, command...
    what=$1 signal=$2 code=$3
    shift 3
    interrupt "$what" "$signal" "$code" sh -c 'exec "$@" <pipe' sh "$@"
}

good trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o rag.dst
good sweep rag.dst --method llma --num-speculative-tokens 2:6:2 -o grid.tsv

# --- waiting for input -------------------------------------------------------------------------
interrupt_stdin "trace import of standard input" TERM 143 "$draftscope" trace import - -o x.dst --tokenizer bytes
interrupt_stdin "trace import of standard input" INT 130 "$draftscope" trace import - -o x.dst --tokenizer bytes
check "an interrupted import leaves nothing" test ! -e x.dst -a ! -e x.dst.tmp
interrupt "trace import of a FIFO" TERM 143 "$draftscope" trace import fifo -o x.dst --tokenizer bytes
interrupt "a tokenizer in a FIFO" TERM 143 "$draftscope" trace import "$sample/rag.jsonl" -o x.dst --tokenizer fifo
interrupt "a cost table in a FIFO" TERM 143 "$draftscope" sim rag.dst --method llma --cost table:fifo
interrupt "arrival times in a FIFO" TERM 143 "$draftscope" serve rag.dst --method llma --cost linear:1,1 \
    --arrivals file:fifo
interrupt "a result table in a FIFO" HUP 129 "$draftscope" plot heatmap fifo -o x.svg
interrupt "acceptance rates in a FIFO" TERM 143 "$draftscope" sim --target markov:8 --method sequoia --acceptance-by-rank ./fifo
interrupt "a tree in a FIFO" TERM 143 "$draftscope" sim --target markov:8 --draft markov:8 --method tree --tree ./fifo

# --- waiting for output ------------------------------------------------------------------------
yes '{"prompt": "a b c d e f g", "output": "h i j k l m n o p"}' | head -n 20000 >many.jsonl
good trace import many.jsonl -o many.dst --tokenizer bytes
# The pipe has a reader that never reads.
mkfifo stuck
interrupt "trace export into a full pipe" TERM 143 sh -c '
    sleep 600 <stuck & echo $! >reader; exec "$0" trace export many.dst --format jsonl >stuck' "$draftscope"
kill "$(cat reader)"

# --- computing -----------------------------------------------------------------------------------
# A pair of distributions takes ten seconds, in which nothing looks for signals.
before=100
interrupt "a computation" INT 130 "$draftscope" theory accept --zipf 2000000,1,0.5 -K 64 --threads 1
before=0
check "a computation: one line, not: $(cat err)" test "$(cat err)" = "draftscope: interrupted"

# --- loading weights ---------------------------------------------------------------------------
# One thread makes 1.2 billion numbers in more than five seconds. This and the next only under
# DSC_TEST_ALL.
if [ -n "${DSC_TEST_ALL:-}" ] && [ -x "${draftscope%/*}/draftscope-live" ]; then
    cat >large.json <<'EOF'
{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
 "num_attention_heads": 16, "vocab_size": 32000, "torch_dtype": "bfloat16"}
EOF
    echo '{"prompt": [1, 2, 3]}' >ids.jsonl
    most=300
    for command in "run -o live.jsonl" "record -o live.dst" "profile -o live.tsv"; do
        case $command in
        profile*) method= ;;
        *) method="--method none --prompts ids.jsonl --max-tokens 1" ;;
        esac
        # shellcheck disable=SC2086
        interrupt "live $command: weights" TERM 143 "$draftscope" live $command $method \
            --shape ./large.json --random-weights 1 --device cpu --threads 1
    done
    most=100
    check "live: nothing is left" sh -c '! ls -d live.* 2>/dev/null'
fi

# --- a long pass -------------------------------------------------------------------------------
# One thread needs half a minute for this prompt, and no request has been finished.
if [ -n "${DSC_TEST_ALL:-}" ] && [ -x "${draftscope%/*}/draftscope-live" ]; then
    cat >middle.json <<'EOF'
{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 8192, "num_hidden_layers": 4,
 "num_attention_heads": 16, "vocab_size": 256, "torch_dtype": "bfloat16",
 "max_position_embeddings": 16384}
EOF
    awk 'BEGIN { printf "{\"prompt\": [1"; for (i = 0; i < 8000; i++) printf ", %d", i % 256
        print "]}" }' >long.jsonl
    most=300 before=400
    for command in "run -o pass.jsonl" "run --baseline -o pass.jsonl" "record -o pass.dst" \
        "profile --tokens 2048 --context 0 -o pass.tsv"; do
        case $command in
        profile*) method= ;;
        *) method="--method none --prompts long.jsonl --max-tokens 1" ;;
        esac
        # shellcheck disable=SC2086
        interrupt "live $command: a long pass" TERM 143 "$draftscope" live $command $method \
            --shape ./middle.json --random-weights 1 --device cpu --threads 1
        check "live $command: one line, not: $(cat err)" test "$(wc -l <err)" = 1
    done
    most=100 before=0
    check "live: nothing is left of a long pass" sh -c '! ls -d pass.* .pass* 2>/dev/null'
fi

# --- gnuplot -----------------------------------------------------------------------------------
mkdir bin empty
cat >bin/gnuplot <<'EOF'
#!/bin/sh
echo $$ >"$PIDFILE"
exec sleep 600
EOF
chmod +x bin/gnuplot
PIDFILE=$work/gnuplot.pid
export PIDFILE
interrupt "a hanging gnuplot" TERM 143 env PATH="$work/bin:$PATH" "$draftscope" plot heatmap grid.tsv -o x.svg
has_ended() { # process
    ! processor_time "$1" >/dev/null
}
check "it has ended, too" wait_until $$ has_ended "$(cat gnuplot.pid)"
check "no figure is left" sh -c 'test -z "$(ls x.* 2>/dev/null)"'
cp bin/gnuplot .
rm gnuplot.pid
for path in ":" "$work/empty:" "::"; do
    PATH=$path "$draftscope" plot heatmap grid.tsv -o x.svg 2>err
    check "PATH='$path': exit code 3" test $? = 3
    check "PATH='$path': a gnuplot in the current folder is not run" test ! -e gnuplot.pid
done

# --- closed standard streams -------------------------------------------------------------------
"$draftscope" sim rag.dst --method llma --timeline steps.csv >&- 2>err
check "standard output is closed: exit code 1" test $? = 1
check "its line" grep -q 'cannot write to standard output' err
check "no file has what was printed" sh -c '! grep -q block_efficiency steps.csv 2>/dev/null'
"$draftscope" sweep rag.dst --method llma --num-speculative-tokens 2:6:2 -o closed.tsv <&- >&- 2>&-
check "all are closed, the result is in a file: exit code 0" test $? = 0
check "and complete" cmp grid.tsv closed.tsv
"$draftscope" trace import - -o x.dst --tokenizer bytes <&- 2>err
check "standard input is closed: exit code 4" test $? = 4

# --- a reader that stops -----------------------------------------------------------------------
("$draftscope" trace export many.dst 2>err; echo $? >code) | head -n 1 >/dev/null
check "the reader stopped: exit code 141, not $(cat code)" test "$(cat code)" = 141
check "without a word: $(cat err)" test ! -s err
"$draftscope" >out 2>err
check "without a command: exit code 0" test $? = 0
check "a guide" grep -q 'draftscope tune answers.dst' out

# --- a trace that shrinks ----------------------------------------------------------------------
shard=$(ls many.dst/shard-*)
"$draftscope" sweep many.dst --method llma --n 1:8 --num-speculative-tokens 1:64 --evaluate loop \
    -o slow.tsv --progress json >out 2>err &
process=$!
wait_until $process grep -q '"done"' err
: >"$shard"
wait $process
check "the trace shrank: exit code 4" test $? = 4
check "its line names the file" grep -q "$shard: the file became shorter" err
check "nothing has the final name" test ! -e slow.tsv

kill $holder
summary
