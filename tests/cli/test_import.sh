#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope trace import and advise on logs of other programs: chats, named fields, responses; what
# is said about a file of no known format; and, with DSC_TEST_DATA, GSM8K as chats.
. "${top_srcdir:-.}/tests/cli/common.sh"
data=$top/tests/data/import
sample=$top/traces/sample
cost="--cost linear:.02,.0005 --batch-size 1"
says() { # WORDS: in the last messages
    check "'$1'" grep -qF -e "$1" err
}

# --- chats -------------------------------------------------------------------------------------
good trace import "$data/chat.jsonl" --tokenizer bytes -o chat.dst
says 'every assistant turn of a chat is a request'
says 'the requests are of 2 models, m (2), n (1); --model NAME selects one'
good trace import "$data/chat.jsonl" --tokenizer bytes --turns last --model m --chat-template llama3 -o last.dst
says '1 requests of other models were left out'
into out "$draftscope" trace export last.dst
check "the template of --chat-template" grep -qF '<|start_header_id|>user<|end_header_id|>\n\nMore<|eot_id|>' out
mkdir model
cp "$sample/tokenizer.json" model
echo '{"chat_template": "{{ <|im_start|> }}"}' >model/tokenizer_config.json
good trace import "$data/chat.jsonl" --tokenizer model/tokenizer.json -o found.dst
says 'have the chat template chatml, recognized next to the tokenizer'
echo '{"chat_template": "{{ messages }}"}' >model/tokenizer_config.json
bad 4 'name the nearest with --chat-template' trace import "$data/chat.jsonl" --tokenizer model/tokenizer.json -o x.dst
bad 2 "chat template 'lama3' must be auto, model or one of" trace import "$data/chat.jsonl" --tokenizer bytes --chat-template lama3 -o x.dst
echo '{"prompt": "p", "completion": "c", "model": "m"}' >pair.jsonl
bad 4 "no requests of model 'z'; the models are m (1)" trace import pair.jsonl --tokenizer bytes --model z -o x.dst

# --- what a model writes besides the content ---------------------------------------------------------
# An agent's answers: a call alone, and the text after its result.
cat >agent.jsonl <<'END'
{"messages": [{"role": "developer", "content": "You edit files."}, {"role": "user", "content": "List them."}, {"role": "assistant", "content": null, "reasoning_content": "I call ls.", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\":\"ls\"}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "a b"}, {"role": "assistant", "content": "Two."}]}
END
good trace import agent.jsonl --tokenizer bytes --chat-template qwen3 -o agent.dst
good trace export agent.dst
check "the call as the model wrote it" grep -qF '<think>\nI call ls.\n</think>\n\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>' out
check "its result in the next prompt" grep -qF '<tool_response>\na b\n</tool_response>' out
bad 4 "agent.jsonl:1: field 'messages[2]' has reasoning, and how the model's chat template writes it is unknown: no chat template is known" trace import agent.jsonl --tokenizer bytes -o x.dst
bad 4 "llama3.1 has no form of it. Name that template with --chat-template" trace import agent.jsonl --tokenizer bytes --chat-template llama3.1 -o x.dst
check "nothing is written" test ! -e x.dst
good trace import agent.jsonl --tokenizer bytes --lossy -o lossy.dst
says 'warning: 2 of 2 requests lack a part of what the source has (--lossy)'
echo '{"prompt": "p", "completion": "c"}' >plain.jsonl
good trace import plain.jsonl --tokenizer bytes -o plain.dst
sed 's/}$/, "id": "other"}/' plain.jsonl >other.jsonl
good trace import other.jsonl --tokenizer bytes -o plain.dst --force
good trace merge lossy.dst plain.dst -o both.dst
for t in lossy both; do
    good sim $t.dst --method ngram $cost
    says 'an import with --lossy, in which 2 requests lack a part of what the model wrote or read'
done
good trace info lossy.dst
check "the mark in the provenance" grep -q lossy_requests out
echo '{"id": "r", "choices": [{"message": {"content": "Hm."}, "finish_reason": "stop"}], "usage": {"completion_tokens": 40}}' >used.jsonl
bad 4 'the server counted 40 output tokens, but the text has 3: reasoning or tool calls are missing' trace import used.jsonl --tokenizer bytes -o x.dst
good trace import used.jsonl agent.jsonl --tokenizer bytes --lossy --on-error skip -o x.dst
says '1 lines were skipped'
rm -r x.dst

# --- fields ------------------------------------------------------------------------------------
echo '{"question": "q", "answer": "a"}' >qa.jsonl
bad 4 'add --map prompt=question,output=answer' trace import qa.jsonl --tokenizer bytes -o x.dst
good trace import qa.jsonl --tokenizer bytes --map prompt=question,output=answer -o qa.dst
good trace import qa.jsonl --tokenizer bytes --map output=answer -o half.dst
says 'warning: 1 of 1 requests have no prompt'
good trace info half.dst
check "info counts empty prompts" grep -q '^requests_without_prompt  *1$' out
bad 2 'must be FIELD=PATH' trace import qa.jsonl --tokenizer bytes --map question -o x.dst
bad 4 "field 'questio' is missing" trace import qa.jsonl --tokenizer bytes --map prompt=questio,output=answer -o x.dst
printf 'question,answer\nq,a\n' >qa.csv
bad 4 'the input must be JSON lines' trace import qa.csv --tokenizer bytes -o x.dst
printf '{"prompt": "p", "output": "o"}\n{"prompt": "p", "outp' >cut.jsonl
bad 4 'may be truncated: --on-error skip' trace import cut.jsonl --tokenizer bytes -o x.dst
good trace import cut.jsonl --tokenizer bytes --on-error skip -o cut.dst
says '1 lines were skipped'

# --- advise ------------------------------------------------------------------------------------
# Chats and responses whose answers repeat the question, enough of them for two halves.
awk 'BEGIN {
    for (i = 0; i < 40; i++) {
        t = sprintf("the order number %d of the customer in the town of lower %d is late", i, i * 7)
        printf "{\"messages\": [{\"role\": \"user\", \"content\": \"Say: %s\"}, ", t > "chats.jsonl"
        printf "{\"role\": \"assistant\", \"content\": \"I say: %s.\"}]}\n", t > "chats.jsonl"
        printf "{\"request\": {\"prompt\": \"Say: %s\"}, \"response\": {\"id\": \"cmpl-%d\", ", t, i > "served.jsonl"
        printf "\"object\": \"text_completion\", \"choices\": [{\"index\": 0, \"text\": \"I say: %s.\", ", t > "served.jsonl"
        printf "\"finish_reason\": \"stop\"}], \"usage\": {\"completion_tokens\": %d}}}\n", length(t) + 9 > "served.jsonl"
    }
}'
# $cost is a list of words.
# shellcheck disable=SC2086
for log in chats served; do
    good advise $log.jsonl --tokenizer bytes $cost -o $log
    check "advise $log: all requests" grep -q "$log.dst: 40 requests" out
    check "advise $log: a verdict" grep -qE '^ +1 .* run (ngram|suffix) ' out
done
# shellcheck disable=SC2086
{
    rm chats.tsv chats.html
    bad 2 'chats.dst was made of other files' advise chats.jsonl --tokenizer bytes $cost --chat-template chatml -o chats
    good advise chats.jsonl --tokenizer bytes $cost --chat-template chatml -o chats --force
    cat qa.jsonl qa.jsonl qa.jsonl qa.jsonl >more.jsonl
    good advise more.jsonl --tokenizer bytes --map prompt=question,output=answer -o more
    bad 4 'contain no tokens to replay' advise "$data/sglang.json" --tokenizer bytes $cost -o totals
}

# GSM8K: question -> user, answer -> assistant.
if [ -r "${DSC_TEST_DATA:-}/gsm8k/test.jsonl" ]; then
    head -n 200 "$DSC_TEST_DATA/gsm8k/test.jsonl" | sed 's/^{"question": \(".*"\), "answer": \(".*"\)}$/{"messages": [{"role": "user", "content": \1}, {"role": "assistant", "content": \2}]}/' >gsm8k.jsonl
    # shellcheck disable=SC2086
    good advise gsm8k.jsonl --tokenizer "$DSC_TEST_DATA/tokenizers/gpt2.json" $cost --chat-template none -o gsm8k
    check "GSM8K: all chats" grep -q 'gsm8k.dst: 200 requests' out
fi
summary
