# SPDX-License-Identifier: Apache-2.0
"""Prints target calls and accepted tokens of transformers' early-exit drafts on the demo target.

    python early_exit.py [-n REQUESTS] [-k DRAFT_TOKENS] [-m MAX_TOKENS]      (torch, transformers)

assistant_early_exit=E drafts with the first E layers, the final norm and the output matrix, as
`draftscope live run --draft-layers 0:E --method draft-model` does. tests/cli/test_live_layers.sh
holds the output of transformers 5.24.0: a line for each E, with a number for each request.
"""
import argparse
import json
import pathlib

import torch
import transformers.generation.candidate_generator as candidates
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

parser = argparse.ArgumentParser()
parser.add_argument("-n", type=int, default=8)
parser.add_argument("-k", type=int, default=5)
parser.add_argument("-m", type=int, default=64)
args = parser.parse_args()
demo = pathlib.Path(__file__).resolve().parents[2] / "live/demo"
torch.set_num_threads(1)
model = AutoModelForCausalLM.from_pretrained(demo / "target", dtype=torch.float32).eval()
# A candidate generator reads these of its draft model, which here is the model itself.
model.generation_config.num_assistant_tokens = args.k
model.generation_config.num_assistant_tokens_schedule = "constant"
model.generation_config.assistant_confidence_threshold = 0
tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(demo / "target/tokenizer.json"))
lines = (demo / "prompts.jsonl").read_text().splitlines()[:args.n]
steps = []
update = candidates.AssistedCandidateGenerator.update_candidate_strategy


def count(self, input_ids, scores, num_matches):
    steps.append(int(num_matches))
    return update(self, input_ids, scores, num_matches)


candidates.AssistedCandidateGenerator.update_candidate_strategy = count
for layers in range(1, model.config.num_hidden_layers):
    calls, accepted = [], []
    for line in lines:
        ids = torch.tensor([tokenizer.encode(json.loads(line)["prompt"])])
        steps.clear()
        model.generate(ids, max_new_tokens=args.m, do_sample=False, assistant_early_exit=layers)
        calls.append(len(steps))
        accepted.append(sum(steps))
    print(layers, *calls, *accepted)
