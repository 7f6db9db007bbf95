# SPDX-License-Identifier: Apache-2.0
"""Reads draftscope traces (draftscope-trace(5)). Requires numpy and safetensors.

    for q in requests("answers.dst"):       # or print a trace: python3 read_trace.py answers.dst
        q["id"], q["prompt.tok"], q["target.logp_y"], q["references"], q["rows.target"][position]
"""
import json
import sys
import numpy as np
from safetensors import deserialize

TYPE = {"U8": "<u1", "U16": "<u2", "BF16": "<u2", "U32": "<u4", "I64": "<i8", "F32": "<f4"}
PER_OUTPUT_TOKEN = ("draft", "target", "accept", "stat", "rollout")

def array(t):
    """Returns a tensor as an array, BF16 converted to F32."""
    a = np.frombuffer(t["data"], TYPE[t["dtype"]]).reshape(t["shape"])
    return (a.astype("<u4") << 16).view("<f4") if t["dtype"] == "BF16" else a

def requests(folder):
    """Yields a dict for each request: the request's part of every tensor, by the tensor's name; id,
    metadata and texts, decoded; references: a (kind, text or None, token ids) each, kind 0 a
    document, 1 a turn; rows.SIDE: (token ids, their ln p, ln of the remaining mass) for each output
    token."""
    for shard in json.load(open(folder + "/manifest.json", encoding="utf-8"))["shards"]:
        with open(f"{folder}/{shard['file']}", "rb") as f:
            t = {name: array(x) for name, x in deserialize(f.read()) if x["dtype"] in TYPE}

        def cut(name, offset, i):
            return t[name][t[offset][i]:t[offset][i + 1]]
        def text(name, i):
            return bytes(cut(name, name + ".offset", i)).decode() if name in t else None
        def row(side, j):
            if side + ".dense" in t:
                return range(t[side + ".dense"].shape[1]), t[side + ".dense"][j], -np.inf
            listed = (cut(f"{side}.{x}", side + ".offset", j) for x in ("token", "logp"))
            return *listed, t[side + ".tail"][j]

        for i in range(shard["requests"]):
            q = {"id": text("request.id", i), "metadata": json.loads(text("metadata", i) or "{}"),
                 "references": [(int(t["reference.kind"][r]), text("reference.text", r),
                                 cut("reference.tok", "reference.offset", r))
                                for r in range(*t["request.reference"][i:i + 2])]}
            for name in sorted(t):
                group, _, rest = name.partition(".")
                if group in ("prompt", "output") and rest == "text":
                    q[name] = text(name, i)
                elif group in ("prompt", "output", "step") and not rest.endswith("offset"):
                    q[name] = cut(name, group + ".offset", i)
                elif group in PER_OUTPUT_TOKEN:
                    q[name] = cut(name, "output.offset", i)
                elif group == "rows" and rest.endswith((".tail", ".dense")):
                    side = name.rpartition(".")[0]
                    q[side] = [row(side, j) for j in range(*t["output.offset"][i:i + 2])]
            yield q

if __name__ == "__main__":
    print(json.dumps(json.load(open(sys.argv[1] + "/manifest.json", encoding="utf-8")), indent=1))
    for request in requests(sys.argv[1]):
        print("", *(f"{name:16} {value}" for name, value in request.items()), sep="\n")
