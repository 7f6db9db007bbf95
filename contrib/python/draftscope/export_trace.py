# SPDX-License-Identifier: Apache-2.0
"""Records the distributions of a draft and a target model along given outputs as a trace.

    python -m draftscope.export_trace IN.jsonl... --target MODEL --draft MODEL -o OUT.dst

A line of IN is {"prompt": TEXT, "output": TEXT} with the optional fields "id", "references",
"finish_reason" and "metadata", as in draftscope-trace(5); other fields are ignored. TEXT is a
string, a list of token ids, or {"text": ..., "tokens": ...}. With --generate N the target generates
the outputs, and those of the lines are ignored. At every output token, both models compute the
distribution given the prompt and the output before it (teacher forcing). The trace contains, for
each model, ln p of the output token, the argmax token and the entropy; the output token's rank in
the draft's distribution; and the distributions as selected by --logprobs.

The tokenizer's EOS token is appended to an output given as text alone, unless its finish_reason is
"length". The trace gets its final name when it is complete; an invalid line stops the export and
removes the incomplete trace.

MODEL is an argument of transformers.AutoModelForCausalLM.from_pretrained or, with --backend vllm,
of vllm.LLM. Both models must have the same token ids. Requires numpy; and torch and transformers,
or vllm. It needs no compiled part of the package: with PYTHONPATH=contrib/python it runs in a
source tree.
"""
import argparse
import hashlib
import inspect
import json
import math
import os
import shlex
import sys

import numpy as np

from draftscope._writer import TraceWriter

CHUNK = 64  # output positions whose complete distributions are in memory at once
NO_RANK = 65535


class Unusable(Exception):
    """An error in the input, which stops the export."""


# --- Hugging Face transformers -------------------------------------------------------------------

class Transformers:
    """Distributions are softmax(logits / temperature), without top-k or top-p."""
    has_entropy = True

    def __init__(self, name, args, _share):
        import torch
        import transformers
        self.torch, self.args = torch, args
        dtype = args.dtype if args.dtype == "auto" else getattr(torch, args.dtype)
        key = "dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype"
        options = {key: dtype} | ({"device_map": "auto"} if args.device == "auto" else {})
        self.model = transformers.AutoModelForCausalLM.from_pretrained(name, **options).eval()
        if args.device != "auto":
            self.model.to(args.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.keeps = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        self.longest = getattr(self.model.config, "max_position_embeddings", None) or math.inf
        end = getattr(self.model.generation_config, "eos_token_id", None)
        self.ends = [end] if isinstance(end, int) else list(end or [])
        self.vocab_size = self.feed([0], None, 1)[0].shape[1]
        self.version = f"transformers {transformers.__version__}, torch {torch.__version__}"

    def feed(self, tokens, past, keep):
        """Returns the logits after the last `keep` tokens, [keep, vocabulary], and the KV cache."""
        ids = self.torch.tensor([tokens], device=self.model.device)
        only = {"logits_to_keep": keep} if self.keeps else {}
        with self.torch.inference_mode():
            out = self.model(input_ids=ids, past_key_values=past, use_cache=True, **only)
        return out.logits[0, -keep:], out.past_key_values

    def distribution(self, logits):
        return self.torch.log_softmax(logits.double() / self.args.temperature, -1)

    def generate(self, prompt, seed):
        """Generates up to --generate tokens, within the context length, including EOS."""
        generator = self.torch.Generator().manual_seed(seed)
        output, fed, past = [], prompt, None
        while len(output) < min(self.args.generate, self.longest - len(prompt)):
            logits, past = self.feed(fed, past, 1)
            logp = self.distribution(logits)[0].cpu()
            fed = [int(logp.argmax() if self.args.greedy else
                       self.torch.multinomial(logp.exp(), 1, generator=generator))]
            output += fed
            if fed[0] in self.ends:
                break
        return output

    def score(self, prompt, output, vocab_size):
        """Returns arrays with one element per output token, by the names that columns_of uses."""
        tokens, past, parts, begin, end = prompt + output[:-1], None, [], 0, len(prompt)
        while begin < len(tokens) and output:
            logits, past = self.feed(tokens[begin:end], past, end - begin if begin else 1)
            first = end - len(prompt) + 1 - len(logits)
            parts.append(self.summarize(self.distribution(logits),
                                        output[first:first + len(logits)], vocab_size))
            begin, end = end, min(end + CHUNK, len(tokens))
        return join(parts)

    def summarize(self, logp, output, vocab_size):
        torch, width = self.torch, logp.shape[1]
        y = torch.tensor(output, device=logp.device)[:, None]
        own = logp.gather(1, y)
        before = torch.arange(width, device=logp.device) < y
        rank = ((logp > own) | ((logp == own) & before)).sum(1)
        out = {"logp_y": own[:, 0], "argmax": logp.argmax(1),
               "entropy": torch.special.entr(logp.exp()).sum(1).clamp(min=0),
               "rank_y": rank.clamp(max=NO_RANK)}
        if self.args.logprobs == "dense":
            out["dense"] = torch.nn.functional.pad(logp, (0, vocab_size - width), value=-math.inf)
        elif self.args.logprobs == "dense-bf16":
            wide = torch.nn.functional.pad(logp, (0, vocab_size - width), value=-math.inf)
            out["dense"] = wide.to(torch.bfloat16).view(torch.int16)
        elif self.args.logprobs:
            top, token = logp.topk(min(self.args.logprobs, width))
            tail = logp.scatter(1, token, -math.inf).logsumexp(1).clamp(max=0)
            return to_numpy(out) | listed(token.cpu().numpy(), top.float().cpu().numpy(),
                                          tail.cpu().numpy())
        return to_numpy(out)


def to_numpy(columns):
    arrays = {name: c.cpu().numpy() for name, c in columns.items()}
    return {name: a.view(np.uint16) if a.dtype == np.int16 else a for name, a in arrays.items()}


def listed(token, logp, tail):
    """Converts top-m arrays to lists without the tokens of probability 0."""
    some = np.isfinite(logp)
    return {"offset": np.concatenate(([0], np.cumsum(some.sum(1)))), "token": token[some],
            "logp": np.minimum(logp[some], 0), "tail": tail}


def join(parts):
    """Concatenates the columns of consecutive chunks."""
    out = {}
    for name in parts[0] if parts else ():
        if name == "offset":
            steps = np.concatenate([np.diff(p[name]) for p in parts])
            out[name] = np.concatenate(([0], np.cumsum(steps)))
        else:
            out[name] = np.concatenate([p[name] for p in parts])
    return out


# --- vLLM ----------------------------------------------------------------------------------------

class Vllm:
    """Top-m lists at temperature 1, from vLLM's prompt log-probabilities."""
    has_entropy = False

    def __init__(self, name, args, share):
        import vllm
        if isinstance(args.logprobs, str) or args.temperature != 1:
            raise Unusable("vllm returns lists at temperature 1: use --logprobs M and no "
                           "--temperature")
        self.vllm, self.args, self.m = vllm, args, max(args.logprobs, 1)
        self.llm = vllm.LLM(model=name, dtype=args.dtype, max_logprobs=self.m, seed=args.seed,
                            gpu_memory_utilization=share, enable_prefix_caching=False)
        config = self.llm.llm_engine.model_config
        self.longest = config.max_model_len - 1  # vllm always generates one more token
        self.vocab_size = config.get_vocab_size()
        self.version = f"vllm {vllm.__version__}"

    def run(self, tokens, **params):
        return self.llm.generate([{"prompt_token_ids": tokens}],
                                 self.vllm.SamplingParams(**params), use_tqdm=False)[0]

    def generate(self, prompt, seed):
        limit = min(self.args.generate, self.longest - len(prompt))
        if limit == 0:
            return []
        return list(self.run(prompt, max_tokens=limit, seed=seed,
                             temperature=0 if self.args.greedy else 1).outputs[0].token_ids)

    def score(self, prompt, output, _vocab_size):
        """vLLM returns the m most probable tokens, and the output token where it is not one."""
        if not output:
            return {}
        logprobs = self.run(prompt + output, max_tokens=1, temperature=0,
                            prompt_logprobs=self.m).prompt_logprobs[len(prompt):]
        own = [dist[y] for dist, y in zip(logprobs, output)]
        out = {"logp_y": np.array([min(x.logprob, 0) for x in own]),
               "rank_y": np.array([min(x.rank - 1, NO_RANK) for x in own]),
               "argmax": np.array([next(t for t, x in dist.items() if x.rank == 1)
                                   for dist in logprobs])}
        tops = [[(t, min(x.logprob, 0)) for t, x in dist.items()
                 if x.rank <= self.m and math.isfinite(x.logprob)] for dist in logprobs]
        if self.args.logprobs:
            left = [1 - math.fsum(math.exp(x) for _, x in top) for top in tops]
            whole = [len(top) == self.vocab_size or rest <= 0 for top, rest in zip(tops, left)]
            out |= {"offset": np.cumsum([0] + [len(top) for top in tops]),
                    "token": np.array([t for top in tops for t, _ in top]),
                    "logp": np.array([x for top in tops for _, x in top]),
                    "tail": np.array([-math.inf if w else math.log(rest)
                                      for w, rest in zip(whole, left)])}
        return out


# --- input ---------------------------------------------------------------------------------------

class Tokens:
    """The target's tokenizer, or none: then all texts must be token ids."""

    def __init__(self, name, draft):
        self.own, self.name, self.sha256, self.eos = None, "none", "", -1
        if name == "none":
            return
        from transformers import AutoTokenizer
        from transformers.utils import cached_file
        self.own, self.name = AutoTokenizer.from_pretrained(name), name
        self.eos = -1 if self.own.eos_token_id is None else self.own.eos_token_id
        file = cached_file(name, "tokenizer.json", _raise_exceptions_for_missing_entries=False)
        if file:
            with open(file, "rb") as f:
                self.sha256 = hashlib.sha256(f.read()).hexdigest()
        if draft:
            self.compare(AutoTokenizer.from_pretrained(draft), draft)

    def compare(self, other, name):
        theirs = {i: t for t, i in other.get_vocab().items()}
        for token, i in self.own.get_vocab().items():
            if theirs.get(i, token) != token:
                raise Unusable(f"the tokenizers differ: token {i} is '{token}' in {self.name} "
                               f"and '{theirs[i]}' in {name}")

    def read(self, value, what, special):
        """Returns the token ids and text of a TEXT, and whether it had no token ids."""
        text = value if isinstance(value, str) else None
        ids = value if isinstance(value, list) else None
        if isinstance(value, dict):
            text, ids = value.get("text"), value.get("tokens")
        if not isinstance(text, (str, type(None))) or not isinstance(ids, (list, type(None))) or \
                not all(type(i) is int for i in ids or []) or text is None and ids is None:
            raise Unusable(f"the {what} is neither a text nor token ids")
        if not self.own and ids is None:
            raise Unusable(f"the {what} is a text, but there is no tokenizer; add --tokenizer")
        if not self.own:
            return ids, None, False
        alone = ids is None
        if alone:
            ids = self.own.encode(text, add_special_tokens=special)
        return ids, self.decode(ids) if text is None else text, alone

    def decode(self, ids):
        return self.own and self.own.decode(ids, skip_special_tokens=True,
                                            clean_up_tokenization_spaces=False)

    def chat(self, text):
        return self.own.apply_chat_template([{"role": "user", "content": text}], tokenize=False,
                                            add_generation_prompt=True)


def once(pairs):
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError("a name occurs twice")
    return out


def refuse(word):
    raise ValueError(f"{word} is not JSON")


def read_request(line, number, tokens, args):
    """Returns the arguments of TraceWriter.add without columns; output None: to be generated."""
    q = json.loads(line, object_pairs_hook=once, parse_constant=refuse)
    if not isinstance(q, dict) or not isinstance(q.get("references", []), list) or \
            not isinstance(q.get("metadata", {}), dict):
        raise Unusable("the line must be an object, its references an array, its metadata an "
                       "object")
    prompt = q.get("prompt")
    if args.chat:
        if not isinstance(prompt, str) or not tokens.own:
            raise Unusable("--chat needs a tokenizer and prompts as texts")
        prompt = tokens.chat(prompt)
    prompt, prompt_text, _ = tokens.read(prompt, "prompt", special=not args.chat)
    output, output_text = None, None
    if not args.generate:
        output, output_text, alone = tokens.read(q.get("output"), "output", special=False)
        if alone and tokens.eos >= 0 and q.get("finish_reason") != "length":
            output = output + [tokens.eos]
    references, texts, kinds = [], [], []
    for r in q.get("references", []):
        ids, text, _ = tokens.read(r, "reference", special=False)
        references.append(ids)
        texts.append(text)
        kinds.append(int(isinstance(r, dict) and r.get("kind") == "turn"))
    return {"id": str(q.get("id", number)), "prompt": prompt, "output": output,
            "references": references, "kinds": kinds, "texts": [prompt_text, output_text, texts],
            "metadata": q.get("metadata")}


def source_of(path):
    sha = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            sha.update(block)
        return {"file": os.path.basename(path), "bytes": f.tell(), "sha256": sha.hexdigest()}


# --- the export ----------------------------------------------------------------------------------

def recorded(models, args, tokens):
    names = ["text"] if tokens.own else []
    names += ["draft_rank"] if "draft" in models else []
    for side, model in models.items():
        names += [f"{side}_logp", f"{side}_argmax"]
        names += [f"{side}_entropy"] if model.has_entropy else []
        if args.logprobs:
            names.append(f"{side}_rows_dense" if isinstance(args.logprobs, str) else f"{side}_rows")
    return names


def columns_of(models, q, args, vocab_size):
    """Returns the statistics of the models along the output, by the names of the tensors."""
    out = {}
    for side, model in models.items():
        scores = model.score(q["prompt"], q["output"], vocab_size)
        for name in ("logp_y", "argmax", "entropy")[:3 if model.has_entropy else 2]:
            out[f"{side}.{name}"] = scores.get(name, np.zeros(0))
        if side == "draft":
            out["draft.rank_y"] = scores.get("rank_y", np.zeros(0))
        if isinstance(args.logprobs, str):
            out[f"rows.{side}.dense"] = scores.get("dense", np.zeros((0, vocab_size)))
        elif args.logprobs:
            for name in ("offset", "token", "logp", "tail"):
                out[f"rows.{side}.{name}"] = scores.get(name, np.zeros(int(name == "offset")))
    return out


def check_fit(q, models):
    if not q["prompt"]:
        raise Unusable("the prompt has no tokens")
    ids = q["prompt"] + (q["output"] or [])
    for side, model in models.items():
        if len(ids) > model.longest:
            raise Unusable(f"prompt and output have {len(ids)} tokens; the {side} takes "
                           f"{model.longest}")
        # Vocabularies may differ in padding tokens at the end.
        bad = next((t for t in ids if not 0 <= t < model.vocab_size), None)
        if bad is not None:
            raise Unusable(f"the {side} has no token {bad}: its vocabulary has "
                           f"{model.vocab_size} tokens")


def lines(paths):
    """Yields position and bytes of each line that is not blank."""
    for path in paths:
        with open(path, "rb") as f:
            yield from ((f"{path}:{i}", line) for i, line in enumerate(f, 1) if line.strip())


def export_line(line, number, args, models, tokens, writer):
    q = read_request(line, number, tokens, args)
    check_fit(q, models)
    if args.generate:
        q["output"] = models["target"].generate(q["prompt"], args.seed + number)
        q["texts"][1] = tokens.decode(q["output"])
        check_fit(q, models)
    writer.add(**q, columns=columns_of(models, q, args, writer.vocab_size))


def export(args, models, tokens, writer):
    number = 0
    for number, (place, line) in enumerate(lines(args.input), 1):
        try:
            export_line(line, number - 1, args, models, tokens, writer)
        except (Unusable, ValueError) as e:
            raise Unusable(f"{place}: {e}") from None
        if sys.stderr.isatty():
            print(f"\r{number} requests ", end="", file=sys.stderr, flush=True)
        if number == args.limit:
            break
    if not number:
        raise Unusable("there are no requests: the input has no lines")


def parse_logprobs(text):
    if text in ("dense", "dense-bf16"):
        return text
    if text.isdecimal() and int(text) < 1 << 31:
        return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a number, dense or dense-bf16")


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("input", nargs="+", metavar="IN.jsonl")
    p.add_argument("-o", "--output", required=True, metavar="OUT.dst",
                   help="trace folder to write")
    p.add_argument("--target", required=True, metavar="MODEL")
    p.add_argument("--draft", metavar="MODEL",
                   help="draft model (default: only the target is recorded)")
    p.add_argument("--backend", choices=["transformers", "vllm"], default="transformers")
    p.add_argument("--tokenizer", metavar="NAME", help="tokenizer (default: the target's); "
                   "none: all texts are token ids")
    p.add_argument("--logprobs", type=parse_logprobs, default=64, metavar="M",
                   help="number of most probable tokens of each distribution to record; 0: none; "
                   "dense: all tokens; dense-bf16: all tokens with 8 significant bits, for theory "
                   "accept --normalize (default 64)")
    p.add_argument("--temperature", type=float, default=1, metavar="T",
                   help="temperature of the distributions and of sampling, above 0 (default 1)")
    p.add_argument("--generate", type=int, default=0, metavar="N",
                   help="generate outputs of at most N tokens with the target first")
    p.add_argument("--greedy", action="store_true", help="generate the argmax token instead of a "
                   "sample; the recorded distributions still have the temperature")
    p.add_argument("--seed", type=int, default=0, help="random seed; request i uses SEED + i")
    p.add_argument("--chat", action="store_true",
                   help="prompts are user messages: apply the tokenizer's chat template")
    p.add_argument("--dtype", default="auto", help="type of the weights (default auto, as stored)",
                   choices=["auto", "float16", "bfloat16", "float32", "float64"])
    p.add_argument("--device", help="device (default: cuda if present, else cpu); auto: "
                   "distributed by accelerate (transformers only)")
    p.add_argument("--limit", type=int, default=0, metavar="N", help="maximum number of requests")
    p.add_argument("--force", action="store_true", help="replace an existing trace")
    args = p.parse_args(argv)
    if not (args.temperature > 0 and math.isfinite(args.temperature)):
        p.error("--temperature must be above 0; use --greedy for argmax tokens")
    if args.generate < 0 or args.limit < 0 or args.seed < 0:
        p.error("--generate, --limit and --seed must not be negative")
    return args


def provenance(args, argv, models):
    about = {"version": next(iter(models.values())).version,
             "command": shlex.join([os.path.basename(sys.argv[0])] + argv), "lines_left_out": 0,
             "target": args.target, "temperature": f"{args.temperature:g}",
             "sources": [source_of(path) for path in args.input]}
    if args.draft:
        about["draft"] = args.draft
    if args.generate:
        about["decoding"] = "greedy" if args.greedy else "sampled"
        about["seed"] = args.seed
    return about


def main(argv):
    args = parse(argv)
    backend = {"transformers": Transformers, "vllm": Vllm}[args.backend]
    try:
        tokens = Tokens(args.tokenizer or args.target, args.draft)
        models = {"draft": backend(args.draft, args, 0.25)} if args.draft else {}
        models["target"] = backend(args.target, args, 0.6)
        vocab_size = max(model.vocab_size for model in models.values())
        with TraceWriter(args.output, vocab_size, recorded(models, args, tokens),
                         tokenizer=tokens.name, tokenizer_sha256=tokens.sha256, eos=tokens.eos,
                         source=args.backend, force=args.force) as writer:
            export(args, models, tokens, writer)
            trace_hash = writer.commit(provenance(args, argv, models))
    except (Unusable, OSError) as e:
        sys.exit(f"export_trace: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"{args.output}: hash {trace_hash}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
