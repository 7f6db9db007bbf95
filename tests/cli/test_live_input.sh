#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What draftscope live refuses, in one line and without waiting: model files that are no files, and
# options that cannot have an effect. Notes on options that have none in this call. What goes to
# standard output with -o -. The command that converts pickled weights, for file names that a shell
# would interpret.
# The names of files are words that no shell may expand here.
# shellcheck disable=SC2016
. "${top_srcdir:-.}/tests/cli/common.sh"
llama=${LIVE_FIXTURES:-$top/tests/oracle/fixtures}/llama
if ! [ -x "${draftscope%/*}/draftscope-live" ]; then
    echo "no draftscope-live: skipped"
    exit 77
fi
program() {
    "$draftscope" live "$@"
}
cat >ids.jsonl <<'END'
{"prompt": [1, 5, 9, 13, 17, 21, 5, 9]}
{"prompt": [3, 60, 61, 62]}
END
plain() { # arguments...: plain decoding
    good run --method none --prompts ids.jsonl --max-tokens 4 --threads 1 "$@"
}

# --- model files -------------------------------------------------------------------------------

refuse_file() { # name in the folder `odd`, words of the message
    "$draftscope" live run --method none --target odd --prompts ids.jsonl --max-tokens 4 \
        --threads 1 >out 2>err </dev/null &
    process=$!
    wait_until $process false || kill -9 $process 2>/dev/null # it waits for ever
    wait $process
    code=$?
    check "$kind as $1: exit code $code" test $code = 4
    check "$kind as $1: the message: $(cat err)" grep -q "odd/$1.*$2" err
    check "$kind as $1: one line" test "$(wc -l <err)" = 1
}
for name in config.json generation_config.json tokenizer.json model.safetensors \
    model.safetensors.index.json; do
    for kind in fifo zero folder empty unreadable; do
        mkdir odd
        cp "$llama"/config.json "$llama"/model.safetensors odd
        case $name in *index*) rm odd/model.safetensors ;; esac
        rm -f odd/$name
        words='not a regular file'
        case $kind in
        fifo) mkfifo odd/$name ;;
        zero) ln -s /dev/zero odd/$name ;;
        folder) mkdir odd/$name ;;
        empty)
            : >odd/$name
            words=
            ;;
        unreadable)
            cp "$llama"/config.json odd/$name
            chmod 0 odd/$name
            words='Permission denied'
            ;;
        esac
        if [ $kind = unreadable ] && [ -r odd/$name ]; then
            skip "unreadable $name" "this user may read everything"
        else
            refuse_file $name "$words"
        fi
        rm -r odd
    done
done

# --- options -----------------------------------------------------------------------------------

none="--target $llama --method none --prompts ids.jsonl"
bad_run() { # words, options...
    expected_words=$1
    shift
    # shellcheck disable=SC2086
    bad 2 "$expected_words" run $none "$@"
}
bad_run "--draft-device: no device is called 'junk'; the names are auto, cpu, cuda and cuda:N" \
    --draft-device junk
bad_run "--device: no device is called 'cuda:x'" --device cuda:x
bad 2 "--draft-device: no device is called 'junk'" profile --target "$llama" --draft-device junk -o x.tsv
bad 2 "--draft-device: no device is called ''" record --target "$llama" --method none \
    --prompts ids.jsonl -o x.dst --draft-device=
bad 2 "--target DIR (or --shape PRESET" run --target "" --method none --prompts ids.jsonl
bad 2 "--draft DIR (or --draft-shape" run --target "$llama" --draft= --method draft-model --prompts ids.jsonl
bad_run "--draft-device requires --draft, --draft-shape or --middle" --draft-device cpu
bad_run "--draft and --draft-shape cannot be combined" --draft "$llama" --draft-shape tinyllama-1.1b
bad_run "--random-weights requires --shape or --draft-shape" --random-weights 1
bad_run "--replay-draft requires --replay" --replay-draft
bad 2 "--skip and -p cannot be combined" run --target "$llama" --method none -p text --skip 1
bad 2 "--requests and -p cannot be combined" run --target "$llama" --method none -p text --requests 1
bad 2 "--middle: a cost table covers" profile --target "$llama" --middle "$llama" -o x.tsv
for option in --num-drafts --rank-depth --rollouts; do
    bad 2 "$option requires a draft model to record: --draft DIR" record --target "$llama" \
        --method none --prompts ids.jsonl -o x.dst $option 2
done
check "nothing is left" sh -c '! ls -d x.* 2>/dev/null'

note() { # what stderr must be, options...
    printf '%s\n' "$1" >expected
    shift
    plain --target "$llama" "$@"
    check "the note: $(cat err)" cmp expected err
}
note "draftscope: note: --draft is not used: the method needs no such model" --draft "$llama"
note "draftscope: note: --middle is not used: the method needs no such model" --middle "$llama"
note "draftscope: note: --draft-shape is not used: the method needs no such model" \
    --draft-shape tinyllama-1.1b --random-weights 1
note "draftscope: note: --top-k is not used at --temperature 0" --top-k 3
note "draftscope: note: --top-p is not used at --temperature 0" --top-p .5
plain --target "$llama" --top-p .5 --temperature 1
check "no note" test ! -s err
plain --target "$llama" --progress json
check "progress without --json" grep -q '"done"' err

# --- standard output ---------------------------------------------------------------------------

plain --target "$llama" -o file.jsonl
plain --target "$llama" -o -
sed 's/"time_s".*//' file.jsonl >expected
sed 's/"time_s".*//' out >got
check "-o -: the outputs and nothing else" cmp expected got
check "-o -: the results are on standard error" grep -q '^output_tokens  *8$' err
check "there is no file of this name" test ! -e ./-
bad_run "--json and -o - both use standard output" -o - --json
profile() { # file
    good profile --target "$llama" --tokens 1,2 --context 0 --prefill-tokens 0 --repeats 1 --threads 1 --progress never \
        -o "$1"
}
profile -
check "profile -o -: nothing else on standard error" test ! -s err
check "profile -o -: a cost table" sh -c 'head -n 1 out | grep -q "^# draftscope: " &&
    test "$(grep -vc "^#" out)" = 3'
check "there is no file of this name" test ! -e ./-

# --- pickled weights ---------------------------------------------------------------------------

mkdir bin
cat >bin/python3 <<'END'
#!/bin/sh
shift 2
printf '%s\n' "$@"
END
chmod +x bin/python3
for name in 'pytorch_model-00001-of-00002.bin' 'a;touch pwned;.bin' '$(touch pwned).bin' \
    '`touch pwned`.pt' "a'; touch pwned; '.pth" '-c import os.bin' 'a
touch pwned
.bin' 'a b & touch pwned.bin' '>pwned.bin'; do
    mkdir pickle
    cp "$llama/config.json" pickle
    : >"pickle/$name"
    bad 4 "(a pickle, which could run code" run --target pickle --method none --prompts ids.jsonl --max-tokens 4
    sed 's/.*run in that folder: //' err >command
    check "the command converts $name" sh -c 'cd pickle && PATH=$1:$PATH sh ../command >../said.names' \
        sh "$work/bin"
    printf './%s\n' "$name" >expected
    check "with this file: $name" cmp expected said.names
    check "and does nothing else" test ! -e pickle/pwned
    rm -r pickle
done

summary
