#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prompts as people have them: chats, questions and published task files as input of live run and
# record; chat templates next to the tokenizer; stop strings and EOS tokens, which all methods obey
# at the same token; a recorded trace against the import of its texts.
. "${top_srcdir:-.}/tests/cli/common.sh"
demo=$top/live/demo
if ! [ -x "${draftscope%/*}/draftscope-live" ]; then
    echo "no draftscope-live: skipped"
    exit 77
fi
program() {
    "$draftscope" "$@"
}
run() { # options...: plain decoding of a few tokens with the model in $model; lines in out.jsonl
    good live run --target "$model" --method none --threads 1 --max-tokens 2 --force -o out.jsonl "$@"
}
prompts() { # the texts of the prompts in out.jsonl, as JSON strings
    sed 's/.*"prompt":{"text":\(".*"\),"tokens":\[[0-9,]*\]},"output".*/\1/' out.jsonl
}
expect() { # description, lines...: the prompts of the last run
    printf '%s\n' "$2" >expected
    prompts >got
    check "$1: $(cat got)" cmp expected got
}
mkdir model
cp "$demo"/target/* model
chmod u+w model/*
model=model

# --- kinds of lines ------------------------------------------------------------------------------

cat >gsm8k.jsonl <<'END'
{"question": "How many?", "answer": "Two.\n#### 2"}
{"question": "Why?", "answer": "So.\n#### 1", "level": 3}
END
run --prompts gsm8k.jsonl
expect "GSM8K" '"How many?"
"Why?"'
check "notes: $(cat err)" sh -c 'grep -q "gsm8k.jsonl: questions are prompts as they are" err &&
    grep -qF "gsm8k.jsonl: these fields are ignored: '"'level'"'" err && test "$(wc -l <err)" = 2'
printf '%s\n' '{"task_id": "HumanEval/0", "prompt": "def f():\n", "entry_point": "f",
"canonical_solution": "    return 1", "test": "assert f()"}' | tr '\n' ' ' | gzip >humaneval.jsonl.gz
run --prompts humaneval.jsonl.gz
expect "HumanEval" '"def f():\n"'
check "HumanEval: the task is the id" grep -q '"id":"HumanEval/0"' out.jsonl
check "HumanEval: no note: $(cat err)" test ! -s err
cat >questions.jsonl <<'END'
{"question_id": 81, "category": "writing", "turns": ["Write.", "Again."]}
{"question_id": 82, "category": "qa", "turns": ["Ask."], "reference": []}
END
run --prompts questions.jsonl
expect "MT-bench, Spec-Bench" '"Write."
"Ask."'
check "MT-bench: the id" grep -q '"id":"81"' out.jsonl
check "MT-bench: the note: $(cat err)" grep -q "1 lines have several turns, of which the first" err
echo '{"query": "who?", "docs": ["A man.", "A dog."], "result": {"text": "x"}}' >llma.jsonl
run --prompts llma.jsonl
expect "LLMA" '"docs:\nA man.\nA dog.\nquery: who?\nanswer:"'
check "LLMA: the documents are references" grep -q '"references":\[{"text":"A man."' out.jsonl
good trace import --tokenizer model llma.jsonl -o llma.dst --eos '</s>'
good trace export llma.dst -o llma.out
check "LLMA: the import has this prompt" sh -c 'grep -o "\"tokens\": *\[[0-9, ]*\]" llma.out |
    head -n 1 | tr -d " " >a; grep -o "\"tokens\":\[[0-9,]*\]" out.jsonl | head -n 1 | cmp - a'
cat >alpaca.json <<'END'
[
  {"instruction": "Sort.", "input": "3 1", "output": "1 3", "generator": "m"},
  {"instruction": "Sing."}
]
END
run --prompts alpaca.json
expect "Alpaca, a document" '"Sort.\n3 1"
"Sing."'
echo '{"problem": {"text": "P"}, "ctx": "C", "more": 1}' >map.jsonl
run --prompts map.jsonl --map prompt=problem.text,references=ctx
expect "a map" '"P"'
check "a map: references" grep -q '"references":\[{"text":"C"' out.jsonl

refuse() { # exit code, words, line, options...
    expected_code=$1 refused_words=$2
    printf '%s\n' "$3" >bad.jsonl
    shift 3
    bad "$expected_code" "$refused_words" live run --target "$model" --method none --prompts bad.jsonl "$@"
}
refuse 4 "bad.jsonl:2: the line has question, but the lines before it have prompt" '{"prompt": "a"}
{"question": "b"}'
refuse 4 "bad.jsonl:1: field 'prompt' is missing, and so are messages, turns" '{"text": "a"}'
refuse 4 "name the field of the prompt: --map prompt=FIELD. The line has 'text'" '{"text": "a"}'
refuse 4 "bad.jsonl:1: field 'question' is empty" '{"question": "  "}'
refuse 4 "bad.jsonl:1: field 'question' must be a string, not a number" '{"question": 3}'
refuse 4 "bad.jsonl:1: field 'turns' must be an array of strings" '{"turns": "x"}'
refuse 4 "bad.jsonl:1: field 'turns[0]' is missing" '{"turns": []}'
refuse 4 "bad.jsonl:1: field 'docs[0]' must be a string" '{"query": "a", "docs": [1]}'
refuse 4 "bad.jsonl:1: messages need a chat template, and there is none next to the tokenizer" \
    '{"messages": [{"role": "user", "content": "a"}]}'
refuse 4 "bad.jsonl:1: field 'messages' must be an array of messages" '{"messages": 1}'
refuse 4 "bad.jsonl:1: field 'messages' has no user message" '{"messages": []}'
refuse 4 "bad.jsonl:1: field 'messages' has no user message" '{"messages": [{"role": "system", "content": "a"}]}'
refuse 4 "bad.jsonl:1: field 'messages[0].content' is empty" '{"messages": [{"role": "user", "content": ""}]}'
refuse 4 "bad.jsonl:1: the line must be an object" '[1]'
refuse 2 "the map must name the field of the prompt: prompt=FIELD" '{"a": "b"}' --map references=a
refuse 4 "bad.jsonl:1: field 'q' is missing" '{"a": "b"}' --map prompt=q
refuse 2 "chat template 'junk' must be auto, model or one of" '{"prompt": "a"}' --chat-template junk
refuse 2 "there is no chat template next to the tokenizer" '{"prompt": "a"}' --chat-template model

# --- chat templates ------------------------------------------------------------------------------

cat >chats.jsonl <<'END'
{"messages": [{"role": "user", "content": "Hi"}]}
{"conversations": [{"from": "human", "value": "A"}, {"from": "gpt", "value": "B"}, {"from": "human", "value": "C"}, {"from": "gpt", "value": "D"}]}
END
run --prompts chats.jsonl --chat-template none
expect "chats without a template" '"user: Hi\nassistant:"
"user: A\nassistant: B\nuser: C\nassistant:"'
echo '{"prompt": [{"role": "user", "content": "Hi"}]}' >trl.jsonl
run --prompts trl.jsonl --chat-template chatml
expect "a list under the name of the prompt" '"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"'
cat >agent.jsonl <<'END'
{"system": "S", "tools": [{"name": "f"}], "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, {"role": "tool", "content": "R"}]}
END
run --prompts agent.jsonl --chat-template chatml
expect "an agent's next turn" '"<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nR\n</tool_response><|im_end|>\n<|im_start|>assistant\n"'
check "its tools, which the template has in another form: $(cat err)" grep -q "these fields are ignored: 'tools'" err
refuse 4 "bad.jsonl:1: field 'messages[1]' has tool calls" "$(cat agent.jsonl)" --chat-template zephyr
cat >model/tokenizer_config.json <<'END'
{"chat_template": "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m }}<end_of_turn>{% endfor %}",
 "bos_token": {"content": "<s>"}, "model_max_length": 1000000000000000019884624838656}
END
run --prompts chats.jsonl
expect "the model's own template" '"<s><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n"
"<s><start_of_turn>user\nA<end_of_turn>\n<start_of_turn>model\nB<end_of_turn>\n<start_of_turn>user\nC<end_of_turn>\n<start_of_turn>model\n"'
check "one BOS token" grep -q '"tokens":\[0,[1-9]' out.jsonl
check "the note: $(cat err)" grep -q "chats.jsonl: prompts have the chat template gemma, recognized" err
run --prompts gsm8k.jsonl --requests 1
expect "a question in it" '"<s><start_of_turn>user\nHow many?<end_of_turn>\n<start_of_turn>model\n"'
run --prompts gsm8k.jsonl --requests 1 --chat-template none
expect "none" '"How many?"'
run --prompts humaneval.jsonl.gz
expect "a prompt is taken as it is" '"def f():\n"'
run --prompts humaneval.jsonl.gz --chat-template model
expect "or wrapped" '"<s><start_of_turn>user\ndef f():<end_of_turn>\n<start_of_turn>model\n"'
run -p Hi --chat-template model
expect "-p" '"<s><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n"'
sed 's/{{ bos_token }}//' model/tokenizer_config.json >no_bos
cp no_bos model/tokenizer_config.json
run --prompts chats.jsonl --requests 1
check "a template without BOS: $(cat out.jsonl)" grep -qv '"prompt":{"text":"[^}]*"tokens":\[0,' out.jsonl
good trace import --tokenizer model chats.jsonl --turns last -o chats.dst --on-error skip
good trace export chats.dst -o chats.out
check "the import: $(cat chats.out)" sh -c 'grep -q "<start_of_turn>user.nA<end_of_turn>" chats.out &&
    ! grep -q "<s>" chats.out'

good trace import --tokenizer model --map messages=question,output=answer gsm8k.jsonl -o gsm8k.dst
good trace export gsm8k.dst -o gsm8k.out
check "an import of questions as messages: $(cat gsm8k.out)" sh -c \
    'grep -q "<start_of_turn>user.nHow many?<end_of_turn>.n<start_of_turn>model" gsm8k.out'
unknown="render the file first: python3 contrib/render_chats.py model FILE"
echo '{% for i in range(1000000000) %}{% for j in range(1000000000) %}x{% endfor %}{% endfor %}' \
    >model/chat_template.jinja
bad 4 "chats.jsonl:1: model/chat_template.jinja: the chat template is not one" live run --target model \
    --method none --prompts chats.jsonl
bad 4 "$unknown" live run --target model --method none --prompts gsm8k.jsonl
head -c 5000000 /dev/zero | tr '\0' 'x' >model/chat_template.jinja
bad 4 "longer than the limit of 4194304 bytes" live run --target model --method none --prompts chats.jsonl
rm model/chat_template.jinja
mkfifo model/chat_template.jinja
bad 4 "chat_template.jinja: not a regular file" live run --target model --method none --prompts chats.jsonl
rm model/chat_template.jinja

python=${PYTHON:-python3}
if "$python" -c 'import jinja2' 2>/dev/null; then
    cat >model/chat_template.jinja <<'END'
{{- bos_token -}}
{%- for m in messages %}
{{- '[' + m['role'] + ']' + m['content'] | trim + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '[answer]' }}{% endif %}
END
    cat chats.jsonl questions.jsonl >mixed.jsonl
    check "render_chats.py" sh -c '"$1" "$2/contrib/render_chats.py" model mixed.jsonl >rendered.jsonl' \
        sh "$python" "$top"
    run --prompts rendered.jsonl
    expect "rendered by Jinja" '"<s>[user]Hi\n[answer]"
"<s>[user]A\n[assistant]B\n[user]C\n[answer]"
"<s>[user]Write.\n[answer]"
"<s>[user]Ask.\n[answer]"'
    check "rendered: one BOS token" sh -c '! grep -q "\[0,0," out.jsonl && grep -q "\"tokens\":\[0," out.jsonl'
    head -n 2 rendered.jsonl | tail -n 1 >answered.jsonl
    good trace import --tokenizer model answered.jsonl -o answered.dst
    echo '{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}' \
        >model/chat_template.jinja
    "$python" "$top/contrib/render_chats.py" --timeout 1 model chats.jsonl >out 2>err
    check "a template without end: $(cat err)" grep -q "chats.jsonl:1: the template takes more than 1 s" err
    rm model/chat_template.jinja
else
    skip "render_chats.py" "no $python with jinja2"
fi
rm model/tokenizer_config.json

# --- stop strings --------------------------------------------------------------------------------

head -n 4 "$demo/prompts.jsonl" >four.jsonl
tokens() { # the output's token ids, a line per request
    sed 's/.*"output":{[^}]*"tokens":\[\([0-9,]*\)\].*/\1/' "$1"
}
answers() { # the output's texts
    sed 's/.*"output":{"text":"\(.*\)","tokens":\[[0-9,]*\]},.*/\1/' "$1"
}
stopped() { # file, method, options...
    stopped_file=$1 stopped_method=$2
    shift 2
    good live run --target "$demo/target" --draft "$demo/draft" --method "$stopped_method" \
        --prompts four.jsonl --max-tokens 40 --threads 1 --force -o "$stopped_file" "$@"
}
stopped free.jsonl none
stopped plain.jsonl none --stop '<<' --stop ' more '
for method in ngram draft-model tree pearl hf-dynamic lookahead; do
    stopped "$method.jsonl" $method --stop '<<' --stop ' more ' --baseline
    tokens plain.jsonl >expected
    tokens "$method.jsonl" >got
    check "$method stops at the same token" cmp expected got
    check "$method: the outputs are equal: $(grep divergences out)" grep -q '^divergences  *0.0000' out
    # A step of PEARL may have no token of the target's own.
    [ $method = pearl ] || check "$method: a token of each step is the target's own, the last one, too" awk '
        { is[$1] = $2 } END { print is["output_tokens"], is["target_calls"], is["num_accepted_tokens"]
            exit !is["output_tokens"] || is["output_tokens"] != is["target_calls"] + is["num_accepted_tokens"] }' out
done
tokens free.jsonl >free
tokens plain.jsonl >cut
i=0
ended=0
while read -r ids; do
    i=$((i + 1))
    all=$(sed -n ${i}p free) text=$(answers plain.jsonl | sed -n ${i}p)
    check "output $i is the beginning of that without --stop" test "${all#"$ids"}" != "$all" -o "$all" = "$ids"
    case $text in
    *'<<'* | *' more '*)
        ended=$((ended + 1))
        count=$(printf %s "$ids" | tr -dc , | wc -c) # one less
        good live run --target "$demo/target" --method none --prompts four.jsonl --skip $((i - 1)) \
            --requests 1 --max-tokens "$count" --threads 1 --force -o shorter.jsonl
        check "output $i ends as soon as it has the text" sh -c '! grep -qE "\"output\":.*(<<| more )" "$1"' \
            sh shorter.jsonl
        ;;
    esac
done <cut
check "some outputs were ended: $ended" test $ended -ge 2
check "they say why" test "$(grep -c '"finish_reason":"stop"' plain.jsonl)" -ge $ended
good live record --target "$demo/target" --draft "$demo/draft" --method draft-model --prompts four.jsonl \
    --max-tokens 40 --threads 1 -o stop.dst --stop '<<' --stop ' more '
good trace export stop.dst -o stop.out
tokens plain.jsonl | tr -d ' ' >expected
grep -o '"output": *{.*' stop.out | grep -o '"tokens": *\[[0-9, ]*\]' | tr -d ' "a-z:[]' >got
check "a recording stops at the same token" cmp expected got
stopped line.out ngram --stop '<<' --stop ' more ' --json
cp out line.jsonl
good validate --trace stop.dst --live line.jsonl
stopped line.out ngram --stop '<<' --json
cp out line.jsonl
bad 4 "line.jsonl:1: --stop is not that of the run that recorded stop.dst" validate --trace stop.dst --live line.jsonl
one="live run --target $demo/target --method none -p text"
# shellcheck disable=SC2086
{
    bad 2 "--stop: the text is empty" $one --stop ''
    bad 2 "--stop: '</s>' is a special token, which is not part of the text; use --eos '</s>'" $one --stop '</s>'
    bad 2 "--eos: the EOS token is given as 2048; token ids of this vocabulary are 0 to 2047" $one --eos 2048
    bad 2 "--eos: tokenizer tokenizer.json has no token '<|im_end|>'" $one --eos '</s>,<|im_end|>'
    bad 2 "--map and -p cannot be combined" $one --map prompt=a
}
for option in --stop=x --eos=1 --chat-template=none --map=prompt=a; do
    bad 2 "${option%%=*} and --replay cannot be combined" live run --target "$demo/target" --method none \
        --replay stop.dst "$option"
done

# --- EOS tokens ----------------------------------------------------------------------------------

stopped eos.jsonl none --eos 200,'</s>'
while read -r ids; do
    case ,$ids, in
    *,200,*,* | *,1,*,*) case ,$ids in *,200 | *,1) ok ;; *) not_ok "--eos: goes on after it: $ids" ;; esac ;;
    *) ok ;;
    esac
done <<END
$(tokens eos.jsonl)
END
check "--eos: a line end ends outputs" sh -c 'grep -q "200\]},\"finish_reason\":\"stop\"" eos.jsonl'

# The model of a tokenizer whose BOS is <|endoftext|> and which ends with <|im_end|>.
cp "$demo"/target/* model
chmod u+w model/*
sed 's/<s>/<|endoftext|>/; s/<\/s>/<|im_end|>/' "$demo/target/tokenizer.json" >model/tokenizer.json
sed 's/"eos_token_id": 1/"eos_token_id": 0/' "$demo/target/config.json" >model/config.json
eos_is() { # trace, id
    good trace info "$1" --json
    check "$1: EOS token $2" grep -q "\"eos_token\": *$2[,}]" out
}
printf '{"prompt": "def f(x):"}\n{"prompt": "from typing import List"}\n' >code.jsonl
for ends in '[1, 0]' 1; do
    echo "{\"bos_token_id\": 0, \"eos_token_id\": $ends}" >model/generation_config.json
    good live record --target model --method none --prompts code.jsonl --max-tokens 120 --threads 1 \
        -o recorded.dst --force
    good live run --target model --method none --prompts code.jsonl --max-tokens 120 --threads 1 \
        -o answers.jsonl --force
    sed 's/,"tokens":\[[0-9,]*\]//g; s/,"metadata":.*/}/' answers.jsonl >texts.jsonl
    good trace import --tokenizer model texts.jsonl -o imported.dst --force
    check "no guess: $(cat err)" test ! -s err
    for trace in recorded imported; do
        eos_is $trace.dst 1
        good trace export $trace.dst -o $trace.out --force
        grep -o '"output": *{.*' $trace.out | grep -o '"tokens": *\[[0-9, ]*\]' >$trace.ids
    done
    check "the import of the texts has the recorded tokens" cmp recorded.ids imported.ids
    check "an output ended by itself" grep -q ', *1\]' recorded.ids
done
rm model/generation_config.json
good trace import --tokenizer model/tokenizer.json texts.jsonl -o imported.dst --force
eos_is imported.dst 0 # config.json
check "config.json is no guess: $(cat err)" test ! -s err
rm model/config.json
good trace import --tokenizer model texts.jsonl -o imported.dst --force
check "the guess is told: $(cat err)" grep -q "outputs end with <|endoftext|>, the first of the usual" err
eos_is imported.dst 0
good trace import --tokenizer model texts.jsonl -o imported.dst --force --eos '<|im_end|>,0'
eos_is imported.dst 1
check "--eos: no guess" test ! -s err
echo '{"eos_token": {"content": "<|im_end|>"}}' >model/tokenizer_config.json
good trace import --tokenizer model texts.jsonl -o imported.dst --force
eos_is imported.dst 1
echo '{"eos_token_id": 2048}' >model/generation_config.json
bad 4 "model/generation_config.json: 'eos_token_id' is 2048; token ids of this tokenizer are 0 to 2047" \
    trace import --tokenizer model texts.jsonl -o x.dst

summary
