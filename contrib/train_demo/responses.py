# SPDX-License-Identifier: Apache-2.0
"""Writes live/demo/responses.jsonl and metrics-*.txt in the format of a vLLM server's logs.

    draftscope live record --target live/demo/target --draft live/demo/draft --method draft-model \\
        --prompts live/demo/prompts.jsonl --max-tokens 96 -o run.dst
    draftscope trace export run.dst -o run.jsonl
    python contrib/train_demo/responses.py run.jsonl live/demo

vLLM is not run: prompts, outputs and draft tokens are those of the demo models with greedy
decoding. The steps are computed for num_speculative_tokens = 5 and counted as vLLM counts them. The
first token comes from the prefill, and every later step drafts five tokens. Draft tokens after the
end of an output are unknown and count as rejected.
"""
import json
import sys

LENGTH = 5


def steps_of(output, draft_argmax):
    """Returns the accepted tokens of each step: draft argmax tokens that equal the output's."""
    at, accepted = 1, []
    while at < len(output):
        n = 0
        while n < LENGTH and at + n < len(output) - 1 and draft_argmax[at + n] == output[at + n]:
            n += 1
        accepted.append(n)
        at += n + 1
    return accepted


def response(number, request):
    output = request["output"]["tokens"]
    accepted = steps_of(output, request["draft_argmax"])
    steps = len(accepted)
    detail = {"mean_acceptance_length": 1 + sum(accepted) / steps,
              "draft_acceptance_rate": sum(accepted) / (LENGTH * steps),
              "acceptance_histogram": [accepted.count(n) for n in range(LENGTH + 1)],
              "num_spec_steps": steps, "num_accepted_draft_tokens": sum(accepted),
              "num_draft_tokens": LENGTH * steps, "num_spec_tokens": LENGTH,
              "per_step_accepted": accepted, "per_step_drafted": [LENGTH] * steps}
    choice = {"index": 0, "text": request["output"]["text"], "token_ids": output,
              "prompt_token_ids": request["prompt"]["tokens"],
              "finish_reason": "stop" if output[-1] == 1 else "length"}
    return {"id": f"cmpl-{number}", "object": "text_completion", "model": "demo",
            "choices": [choice], "metrics": {"speculative_decoding": detail}}


def page(steps):
    """Yields the lines of a metrics page after these steps."""
    name = "vllm:spec_decode_num_"
    labels = 'engine="0",model_name="demo"'
    position = [sum(n > i for n in steps) for i in range(LENGTH)]
    yield f"# TYPE {name}drafts_total counter\n{name}drafts_total{{{labels}}} {len(steps)}.0"
    yield (f"# TYPE {name}draft_tokens_total counter\n"
           f"{name}draft_tokens_total{{{labels}}} {LENGTH * len(steps)}.0")
    yield (f"# TYPE {name}accepted_tokens_total counter\n"
           f"{name}accepted_tokens_total{{{labels}}} {sum(steps)}.0")
    yield f"# TYPE {name}accepted_tokens_per_pos_total counter"
    for i, n in enumerate(position):
        yield f'{name}accepted_tokens_per_pos_total{{{labels},position="{i}"}} {n}.0'


def main():
    source, folder = sys.argv[1:]
    with open(source, encoding="utf-8") as f:
        made = [response(i, json.loads(line)) for i, line in enumerate(f)]
    with open(folder + "/responses.jsonl", "w", encoding="utf-8") as f:
        for r in made:
            f.write(json.dumps(r, separators=(",", ":")) + "\n")
    steps = [n for r in made
             for n in r["metrics"]["speculative_decoding"]["per_step_accepted"]]
    for name, logged in (("before", []), ("after", steps)):
        with open(f"{folder}/metrics-{name}.txt", "w", encoding="utf-8") as f:
            f.write("\n".join(page(logged)) + "\n")


main()
