# SPDX-License-Identifier: Apache-2.0
"""What PyTorch and transformers do on the same machine, measured with their own code.

    python peer.py --draftscope PROGRAM --data DIR -o OUT [--model FILE.gguf] [--device cuda|cpu]

Part `graph`: the time t(n) of a forward pass on n tokens of a Llama with random weights, in plain PyTorch.
On a GPU it is a CUDA graph of exactly this context and n, the fastest form that PyTorch has without a
compiler. Its logits are first compared with those of transformers' LlamaForCausalLM on a tiny shape.

Part `transformers`: the speedup of transformers' own prompt lookup and early exit on SmolLM2, predicted
from its own t(n). Its plain outputs, with the argmax of its first layers, become a trace, which `draftscope
sim` replays. Calls and accepted tokens of each request must equal those that transformers counts. Then, for
a request,

    plain    = P - t(1) + calls (t(1) + o)
    assisted = P - t(1) + D - d + sum over calls with a draft of w tokens of t(w + 1) + w d + o'

P: pass over the prompt; t(n): pass on n tokens at a mean context; D, d: passes of the early layers over the
prompt and on one token (0 for prompt lookup); o, o': what a call takes in addition to passes. That is the
generation loop, which is Python and takes much of the time of a small model. It is measured on one prompt
that is left out of the comparison; predictions without it are printed as well. Measured times are medians
of interleaved runs.

OUT gets peer-graph.tsv, peer-transformers.tsv and peer.md, and uses the model folder that validate.py left
there. Speeds are printed and never judged. Exit codes: 0; 1 a count or a logit differs; 2 usage; 77
something is missing.
"""
import contextlib
import datetime
import gc
import json
import pathlib
import statistics
import sys
import tempfile
import time
import traceback
import types

import validate as v

PARTS = ("graph", "transformers")
TOKENS = (1, 4, 16, 64)
SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
         "num_key_value_heads", "vocab_size", "tie_word_embeddings")
SHAPES = {
    "tiny": (256, 512, 2, 4, 2, 512, False),
    "llama-3-8b": (4096, 14336, 32, 32, 8, 128256, False),
    "llama-3.2-1b": (2048, 8192, 16, 32, 8, 128256, True),
    "llama-2-7b": (4096, 11008, 32, 32, 32, 32000, False),
}
# Ways to mask, and the kernels of attention that may then run; never cuDNN's, which compiles for each shape.
WAYS = {"causal_lower_right": ("FLASH_ATTENTION",), "an explicit mask": ("FLASH_ATTENTION", "MATH")}
# Matrices of a layer that multiply the same input are one.
FUSED = {"qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "o": ("self_attn.o_proj",),
         "gate_up": ("mlp.gate_proj", "mlp.up_proj"), "down": ("mlp.down_proj",)}


def wait(device):
    import torch
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(run, device, repeats, after=lambda: None):
    """Median seconds of run() until the host has seen its end."""
    times = []
    for _ in range(repeats + 1):
        wait(device)
        begin = time.perf_counter()
        run()
        wait(device)
        times.append(time.perf_counter() - begin)
        after()
    return statistics.median(times[1:])


def device_seconds(run, device, repeats):
    """Median seconds on the device itself."""
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


# --- part graph ----------------------------------------------------------------------------------


def llama(shape, dtype, device, spread):
    """transformers' model with random weights."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig
    torch.manual_seed(1)
    config = LlamaConfig(**dict(zip(SIZES, SHAPES[shape])), initializer_range=spread)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()


def model_like(theirs, dtype, device, tokens):
    """The weights of transformers' model (its norms are ones), and a KV cache of `tokens`."""
    import torch
    c, d = theirs.config, theirs.config.hidden_size // theirs.config.num_attention_heads

    def weight(*names):
        return torch.cat([theirs.get_parameter(f"{x}.weight") for x in names]).to(device, dtype)
    embed = weight("model.embed_tokens")
    angle = torch.outer(torch.arange(tokens), c.rope_parameters["rope_theta"] ** (-torch.arange(0, d, 2) / d))
    cos, sin = angle.cos(), angle.sin()
    return types.SimpleNamespace(
        heads=c.num_attention_heads, kv_heads=c.num_key_value_heads, embed=embed,
        head=embed if c.tie_word_embeddings else weight("lm_head"),
        norm=torch.ones(c.hidden_size, dtype=dtype, device=device), eps=c.rms_norm_eps,
        layers=[{name: weight(*(f"model.layers.{i}.{x}" for x in parts)) for name, parts in FUSED.items()}
                for i in range(c.num_hidden_layers)],
        # x cos + roll(x) sin turns the pairs (i, i + d/2).
        rope=[torch.cat(x, 1).to(device, dtype)[:, None] for x in ((cos, cos), (-sin, sin))],
        cache=[torch.empty(2, tokens, c.num_key_value_heads, d, dtype=dtype, device=device).normal_()
               for _ in range(c.num_hidden_layers)])


def mask_of(way, n, context, device):
    import torch
    from torch.nn.attention.bias import causal_lower_right
    if n == 1:
        return None
    if way == "causal_lower_right":  # FlashAttention takes no other mask
        return causal_lower_right(n, context + n)
    return torch.ones(n, context + n, dtype=torch.bool, device=device).tril(context)


def forward(m, ids, context, mask):
    """Logits of ids, which follow `context` tokens in the cache."""
    import torch
    from torch.nn import functional as f
    n, to, every = len(ids), context + len(ids), m.heads + m.kv_heads

    def norm(x):
        return f.rms_norm(x, m.norm.shape, m.norm, m.eps)
    cos, sin = (x[context:to] for x in m.rope)
    x = f.embedding(ids, m.embed)
    for w, cache in zip(m.layers, m.cache):
        qkv = f.linear(norm(x), w["qkv"]).view(n, every + m.kv_heads, -1)
        qk = qkv[:, :every]
        qk = torch.addcmul(qk * cos, qk.roll(qk.shape[-1] // 2, -1), sin)
        cache[0, context:to], cache[1, context:to] = qk[:, m.heads:], qkv[:, every:]
        query, key, value = (y.transpose(0, 1)[None] for y in (qk[:, :m.heads], *cache[:, :to]))
        y = f.scaled_dot_product_attention(query, key, value, mask, enable_gqa=m.heads != m.kv_heads)
        x.addmm_(y[0].transpose(0, 1).reshape(n, -1), w["o"].T)
        gate, up = f.linear(norm(x), w["gate_up"]).chunk(2, -1)
        x.addmm_(f.silu(gate) * up, w["down"].T)
    return f.linear(norm(x), m.head)


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
    wait(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        out = run()
    graph.replay()
    wait(device)
    return graph.replay, out


def logit_error(way, dtype, device):
    """Largest difference from transformers' logits (in float32, on the CPU), relative to the largest logit:
    of a prompt, of tokens after it, and of one more."""
    import torch
    theirs = llama("tiny", torch.float32, "cpu", .08)
    ids = torch.randint(theirs.config.vocab_size, (25,))
    want = theirs(ids[None]).logits[0]
    m, worst = model_like(theirs, dtype, device, len(ids)), 0
    for begin, end in ((0, 17), (17, 24), (24, 25)):
        new, mask = ids[begin:end].to(device), mask_of(way, end - begin, begin, device)
        replay, logits = prepared(lambda n=new, b=begin, k=mask: forward(m, n, b, k), device)
        replay()
        worst = max(worst, float((logits.float().cpu() - want[begin:end]).abs().max()))
    return worst / float(want.abs().max())


def kernels(names):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel([getattr(SDPBackend, x) for x in names])


def check_forward(device, dtype):
    """The way with which the forward pass has transformers' logits; None without one."""
    import torch
    for way, names in WAYS.items():
        try:
            with kernels(("MATH",)):
                exact = logit_error(way, torch.float32, device)
            with kernels(names):
                rounded = logit_error(way, dtype, device)
        except RuntimeError as e:
            print(f"logits on {device} with {way}: {str(e).splitlines()[0]}", flush=True)
            continue
        # In float32 the passes are equal. In bfloat16, of which a rounding is 0.4 %, the errors of all
        # layers add up (2 % on a CPU), and a wrong mask gives 100 %.
        good = exact < 1e-5 and rounded < .06
        print(f"logits on {device} with {way}: relative error {exact:.2g} in float32, {rounded:.2g} in "
              f"{dtype}{'' if good else ' (differs)'}", flush=True)
        if good:
            return way
    return None


def gigabytes(tensors):
    return sum(x.numel() * x.element_size() for x in tensors) / 1e9


def copy_rate(device):
    """GB/s, read and written, of copies within the memory."""
    import torch
    x = torch.ones(2 ** (31 if device == "cuda" else 27), dtype=torch.uint8, device=device)
    y = torch.empty_like(x)
    return gigabytes([x, y]) / device_seconds(lambda: y.copy_(x), device, 10)


def shape_rows(o, name, way, dtype, rate):
    import torch
    m = model_like(llama(name, dtype, o.device, .02), dtype, o.device, max(o.context) + max(TOKENS))
    weights = gigabytes([m.head, m.norm, *(x for w in m.layers for x in w.values())])
    for context in o.context:
        for n in TOKENS:
            ids = torch.randint(len(m.embed), (n,), device=o.device)
            mask = mask_of(way, n, context, o.device)
            run, _ = prepared(lambda i=ids, c=context, k=mask: forward(m, i, c, k).argmax(-1), o.device)
            each, waited = device_seconds(run, o.device, 30), seconds(run, o.device, 10)
            first = each if n == TOKENS[0] else first
            cache = gigabytes(x[:, :context + n] for x in m.cache)
            speed = (weights + cache) / each
            numbers = each * 1e3, waited * 1e3, each / first, weights, cache, speed, speed / rate
            yield [name, str(context), str(n), *(f"{x:.4g}" for x in numbers)]


def graph_part(o, write):
    import torch
    dtype, rows = torch.bfloat16, []
    way = check_forward(o.device, dtype)
    if not way:
        return 1
    rate = copy_rate(o.device)
    for i, name in enumerate(o.shape):
        if o.late():
            print(f"graph: {', '.join(o.shape[i:])} left out: --minutes are over", flush=True)
            break
        with kernels(WAYS[way]):
            rows += shape_rows(o, name, way, dtype, rate)
        if o.device == "cuda":
            gc.collect()
            torch.cuda.empty_cache()
        write("graph", [
            f"{dtype}, {'a CUDA graph' if o.device == 'cuda' else 'no graph'}; attention with {way}: "
            f"{' or '.join(WAYS[way])}",
            f"a copy within the memory reads and writes {rate:.4g} GB/s",
            "ms: on the device; waited_ms: until the host has seen the end; share: of the copy's GB/s",
        ], ["shape", "context", "n", "ms", "waited_ms", "t(n)/t(1)", "weights_gb", "kv_gb", "gb_per_s",
            "share"], rows)
    return 0


# --- part transformers ---------------------------------------------------------------------------


@contextlib.contextmanager
def layers_of(model, what):
    """Within this the model has the layers that draft, as transformers' early exit does it."""
    layers = model.config.num_hidden_layers
    model.config.num_hidden_layers = v.EXIT if what.startswith("early") else layers
    yield
    model.config.num_hidden_layers = layers


def logits_along(model, what, x):
    """Logits, after the layers that draft, from which each token of the plain output follows."""
    import torch
    with layers_of(model, what):
        ids = torch.tensor([x.prompt + x.output["plain"][:-1]], device=model.device)
        return model(ids, logits_to_keep=len(x.output["plain"])).logits[0]


def run_rounds(o, model, prompts):
    """Outputs, (calls, accepted) and seconds of each prompt, plain and with each method in turn."""
    steps, runs = v.Steps(), []
    ways = {"plain": {}, **{what: options for what, (_, options) in v.ASSISTED.items()}}
    for options in ways.values():
        v.generate_one(model, steps, prompts[0][1], 8, **options)
    order = [(i, k) for i in range(o.repeats) for k in range(len(prompts))]
    for done, (i, k) in enumerate(order):
        if done > 1 and o.late():
            print(f"transformers: {len(order) - done} of {len(order)} runs left out: --minutes are over")
            break
        if i == 0:
            name, prompt = prompts[k]
            runs.append(types.SimpleNamespace(name=name, prompt=prompt, output={}, counts={}, equal={},
                                              seconds={way: [] for way in ways}))
        x = runs[k]
        for way, options in ways.items():
            wait(model.device.type)
            begin = time.perf_counter()
            x.output[way], *x.counts[way] = v.generate_one(model, steps, x.prompt, o.max_tokens, **options)
            x.seconds[way].append(time.perf_counter() - begin)
    for x in runs:
        x.seconds = {way: statistics.median(times) for way, times in x.seconds.items()}
    return runs


def simulate(o, model, folder, runs):
    """For each of transformers' methods, the simulator's row of each request."""
    lines, trace, sim = o.o / "peer.jsonl", o.o / "peer.dst", {}
    eos = model.generation_config.eos_token_id
    eos = eos if isinstance(eos, list) else [eos]
    with open(lines, "w", encoding="utf-8") as f:
        for x in runs:
            output = x.output["plain"]
            drafts = logits_along(model, "early", x).argmax(-1).tolist()
            f.write(json.dumps({"id": x.name, "prompt": x.prompt, "output": output, "draft_argmax": drafts,
                                "finish_reason": "stop" if output[-1] in eos else "length"}) + "\n")
    v.call(o.draftscope, "trace", "import", "--format", "jsonl", "--tokenizer", folder, "--eos",
           ",".join(map(str, eos)), "--force", lines, "-o", trace)
    for what, (method, _) in v.ASSISTED.items():
        options = v.DRAFTS if method == "self-speculation" else v.METHODS[method]
        out = v.call(o.draftscope, "sim", trace, *options, "--per-request", "--json").stdout
        sim[what] = [json.loads(x) for x in out.splitlines()[1:]]
    return sim


def compare(model, runs, sim):
    """Prints in how many requests the counts are equal, and those that differ; returns their number."""
    for what, rows in sim.items():
        for x, row in zip(runs, rows):
            ours = [int(row[c]) for c in ("target_calls", "num_accepted_tokens")]
            x.equal[what] = ours == x.counts[what]
            if not x.equal[what]:
                top = logits_along(model, what, x).topk(2).values
                print(f"{x.name}, {what}: calls and accepted {ours} simulated, {x.counts[what]} counted, "
                      f"{'the same' if x.output[what] == x.output['plain'] else 'another'} output; the least "
                      f"lead of an argmax of its logits is {float((top[:, 0] - top[:, 1]).min()):.2g}")
        print(f"{what}: calls and accepted tokens equal in {sum(x.equal[what] for x in runs)} of {len(runs)} "
              f"requests ({sum(x.counts[what][0] for x in runs)} calls, "
              f"{sum(x.counts[what][1] for x in runs)} accepted)", flush=True)
    return sum(not good for x in runs for good in x.equal.values())


def pass_times(model, prompt, lengths, context):
    """For plain (and so for prompt lookup) and for early exit: seconds of passes on n tokens after
    `context`, and over prompts of these lengths."""
    import torch
    from transformers import DynamicCache
    longest, times = max(*lengths, context + 11), types.SimpleNamespace(lengths=lengths)
    ids = torch.tensor([(prompt * (longest // len(prompt) + 1))[:longest]], device=model.device)

    def after_context(n):
        cache = DynamicCache(config=model.config)
        model(ids[:, :context], past_key_values=cache, logits_to_keep=1)
        mask = torch.ones_like(ids[:, :context + n])
        return seconds(lambda: model(ids[:, context:context + n], past_key_values=cache, attention_mask=mask,
                                     logits_to_keep=n), model.device.type, 7, lambda: cache.crop(-n))

    def prompts():
        return [seconds(lambda k=k: model(ids[:, :k], use_cache=True, logits_to_keep=1), model.device.type, 3)
                for k in lengths]
    times.t, times.prompt = [after_context(n) for n in range(1, 12)], prompts()
    with layers_of(model, "early"):
        times.early, times.early_prompt = after_context(1), prompts()
    return times


def price(times, x, what, histogram, loop):
    """Seconds of a request whose calls had drafts of 0, 1, 2, ... tokens."""
    from numpy import interp
    early = times.early if what.startswith("early") else 0
    total = interp(len(x.prompt), times.lengths, times.prompt) - times.t[0]
    if early:
        total += interp(len(x.prompt), times.lengths, times.early_prompt) - early
    return total + sum(calls * (times.t[w] + w * early + loop) for w, calls in enumerate(histogram))


def speedup_rows(times, runs, sim):
    """(rows of the table, seconds of the loop in each call); the first run calibrates and is in no row."""
    drafts = {"plain": [[len(x.output["plain"])] for x in runs],
              **{what: [row["draft_length_histogram"] for row in rows] for what, rows in sim.items()}}
    loop = {way: (runs[0].seconds[way] - price(times, runs[0], way, h[0], 0)) / sum(h[0])
            for way, h in drafts.items()}
    rows = []

    def total(few, way, loop):
        return sum(price(times, runs[i], way, drafts[way][i], loop) for i in few)
    for what in sim:
        for task in (*v.TASKS, "all"):
            few = [i for i, x in enumerate(runs) if i and task in (x.name.split("-")[0], "all")]
            if few:
                measured, with_loop, without = (a / b for a, b in (
                    [sum(runs[i].seconds[way] for i in few) for way in ("plain", what)],
                    [total(few, way, loop[way]) for way in ("plain", what)],
                    [total(few, way, 0) for way in ("plain", what)]))
                counts = [len(few), sum(runs[i].equal[what] for i in few),
                          sum(len(runs[i].output["plain"]) for i in few),
                          *(sum(runs[i].counts[what][j] for i in few) for j in (0, 1))]
                rows.append([what, task, *map(str, counts), *(f"{y:.4g}" for y in (
                    measured, with_loop, 100 * (with_loop / measured - 1), without,
                    100 * (without / measured - 1)))])
    return rows, loop


def transformers_part(o, write):
    made = o.o / "model"  # by validate.py
    with tempfile.TemporaryDirectory() as scratch:
        return predict(o, v.as_folder(o.model, made if made.exists() else pathlib.Path(scratch)), write)


def predict(o, folder, write):
    model = v.load(folder, o.device)
    chats = list(v.chats(folder, o.o))
    # The first prompt of the first task, and the others of every task, the tasks in turn.
    prompts = [chats[0], *(x for i in range(1, o.prompts + 1) for x in chats[i::o.prompts + 1])]
    lengths = sorted(len(prompt) for _, prompt in prompts)
    context = int(statistics.mean(lengths)) + o.max_tokens // 2
    some = sorted({lengths[0], lengths[len(lengths) // 2], lengths[-1]})
    times = pass_times(model, chats[0][1], some, context)
    runs = run_rounds(o, model, prompts)
    sim = simulate(o, model, folder, runs)
    failed = compare(model, runs, sim)
    rows, loop = speedup_rows(times, runs, sim)
    write("transformers", [
        f"SmolLM2-135M-Instruct, float32, {o.max_tokens} tokens at most, {o.repeats} rounds",
        f"ms of a pass on n = 1 to {len(times.t)} tokens after {context}: "
        f"{' '.join(f'{1e3 * x:.4g}' for x in times.t)}; of the early layers on one: {1e3 * times.early:.4g}",
        f"ms of a pass over a prompt: "
        f"{', '.join(f'{1e3 * x:.4g} ({k} tokens)' for k, x in zip(times.lengths, times.prompt))}",
        f"ms of a call in addition to passes, by {chats[0][0]}: "
        f"{', '.join(f'{way} {1e3 * x:.4g}' for way, x in loop.items())}",
    ], ["method", "task", "requests", "equal", "tokens", "calls", "accepted", "measured", "predicted",
        "error_%", "without_loop", "without_loop_error_%"], rows)
    return failed


def writer(o):
    """A function that prints and writes the table of a part, and writes the page of all parts anew."""
    import torch
    import transformers
    name = f"CPU, {torch.get_num_threads()} threads"
    if o.device == "cuda":
        name = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    about = [f"{datetime.date.today().isoformat()}, {name}, torch {torch.__version__}, "
             f"transformers {transformers.__version__}"]
    page = {}

    def write(part, comments, head, rows):
        text = "".join(f"# {x}\n" for x in about + comments)
        text += "".join("\t".join(x) + "\n" for x in [head, *rows])
        (o.o / f"peer-{part}.tsv").write_text(text)
        print(text, flush=True)
        notes = [f"- {x}" for x in about + comments]
        page[part] = [f"## {part}", "", *notes, "", *v.markdown(head, rows), ""]
        (o.o / "peer.md").write_text("\n".join(x for lines in page.values() for x in lines))
    return write


def main():
    parser = v.parser_of(__doc__, PARTS)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shape", type=v.names(SHAPES), metavar="LIST",
                        help=f"of {','.join(SHAPES)} (default: tiny on a CPU, the others on a GPU)")
    parser.add_argument("--context", type=lambda x: [int(y) for y in x.split(",")], default=[128, 512],
                        metavar="LIST", help="tokens before those of a pass (default: 128,512)")
    parser.add_argument("--prompts", type=int, default=2, help="prompts of each task (default: 2)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of timed runs (default: 3)")
    parser.add_argument("--minutes", type=float, default=float("inf"),
                        help="begin nothing more after this time; what is left out is printed")
    o = parser.parse_args()
    end = time.monotonic() + 60 * o.minutes
    o.late = lambda: time.monotonic() > end
    o.o.mkdir(parents=True, exist_ok=True)
    v.need("torch", "transformers")
    v.on_torch(o.device)
    if "transformers" in o.parts:  # what is missing is said before anything is measured
        v.call(o.draftscope, "--version")
        v.write_prompts(o.data, o.prompts + 1, o.o)
        o.model = v.find_model(o.model)
    import torch
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    v.quiet()
    o.shape = o.shape or [x for x in SHAPES if (x == "tiny") == (o.device == "cpu")]
    write, failed = writer(o), 0
    for name, part in zip(PARTS, (graph_part, transformers_part)):
        if name in o.parts and o.late():
            print(f"{name} left out: --minutes are over", flush=True)
        elif name in o.parts:
            try:
                failed += part(o, write)
            except RuntimeError:  # of a GPU: the other part may still work
                traceback.print_exc()
                failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
