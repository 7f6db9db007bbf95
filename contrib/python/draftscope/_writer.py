# SPDX-License-Identifier: Apache-2.0
"""Writes draftscope traces (draftscope-trace(5)). Requires numpy only.

    with draftscope.TraceWriter("out.dst", vocab_size=10, recorded=["target_logp"]) as trace:
        trace.add("r1", prompt=[1, 5], output=[7, 2], columns={"target.logp_y": [-0.1, -0.7]})
        trace.commit({"command": "how it was made"})

The trace gets its final name in commit(). `draftscope trace import` writes the same bytes, and so
the same hash, for the same content, except for distributions in BF16, which it does not write.
"""
from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from typing import Any, Dict, Mapping, Optional, Sequence, Union

import numpy as np

# Name, type and name in the manifest ("": always present) of each column, in file order.
REQUEST_COLUMNS = [
    ("request.id", "U8", ""), ("request.id.offset", "I64", ""),
    ("prompt.tok", "U32", ""), ("prompt.offset", "I64", ""),
    ("output.tok", "U32", ""), ("output.offset", "I64", ""),
    ("reference.tok", "U32", ""), ("reference.offset", "I64", ""),
    ("request.reference", "I64", ""), ("reference.kind", "U8", ""),
    ("prompt.text", "U8", "text"), ("prompt.text.offset", "I64", "text"),
    ("output.text", "U8", "text"), ("output.text.offset", "I64", "text"),
    ("reference.text", "U8", "text"), ("reference.text.offset", "I64", "text"),
    ("metadata", "U8", ""), ("metadata.offset", "I64", ""),
]
OUTPUT_COLUMNS = [  # one element for each output token
    ("target.logp_y", "F32", "target_logp"),
    ("rows.draft.offset", "I64", "draft_rows"), ("rows.draft.token", "U32", "draft_rows"),
    ("rows.draft.logp", "F32", "draft_rows"), ("rows.draft.tail", "F32", "draft_rows"),
    ("rows.draft.dense", "F32", "draft_rows_dense"),
    ("rows.target.offset", "I64", "target_rows"), ("rows.target.token", "U32", "target_rows"),
    ("rows.target.logp", "F32", "target_rows"), ("rows.target.tail", "F32", "target_rows"),
    ("rows.target.dense", "F32", "target_rows_dense"),
    ("draft.logp_y", "F32", "draft_logp"),
    ("draft.argmax", "U32", "draft_argmax"), ("target.argmax", "U32", "target_argmax"),
    ("draft.entropy", "F32", "draft_entropy"), ("target.entropy", "F32", "target_entropy"),
    ("draft.rank_y", "U16", "draft_rank"),
]
ALWAYS = ["tokens", "references", "metadata"]
NUMPY = {"U8": "<u1", "U16": "<u2", "BF16": "<u2", "U32": "<u4", "I64": "<i8", "F32": "<f4"}
ALIGN = 64  # alignment of every tensor in the file, bytes
SHARD_TOKENS, SHARD_ROW_BYTES = 8_000_000, 256_000_000  # a shard is closed at either size
LARGEST_ID = 2**31 - 2  # of a token: a vocabulary has at most 2^31 - 1
OURS = re.compile(r"(manifest\.json|shard-\d{5,}\.safetensors)(\.tmp)?")


def token_ids(tokens: Union[np.ndarray, Sequence[int]], what: str,
              largest: int = LARGEST_ID) -> np.ndarray:
    """int64 [number of tokens]; ValueError or TypeError where `tokens`, named `what`, are no ids."""
    array = np.asarray(tokens)
    if array.ndim != 1:
        raise ValueError(f"{what} has shape {array.shape}; token ids are a sequence of one "
                         "dimension")
    if not array.size:
        return np.zeros(0, np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{what} has the type {array.dtype}; token ids are integers")
    wrong = np.flatnonzero((array < 0) | (array > largest))
    if len(wrong):
        raise ValueError(f"{what}[{wrong[0]}] is {array[wrong[0]]}; token ids are from 0 to "
                         f"{largest}")
    return array.astype(np.int64)


def write_file(path, parts):
    """Writes and syncs a temporary file, renames it, and returns its size and SHA-256."""
    sha = hashlib.sha256()
    with open(path + ".tmp", "xb") as f:
        for part in parts:
            f.write(part)
            sha.update(part)
        size = f.tell()
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".tmp", path)
    return size, sha.hexdigest()


def write_safetensors(path, tensors):
    """Writes tensors (name, type, array). Padding tensors align each one to ALIGN bytes of the
    file, because the format allows no gaps."""
    header, parts, at, pads = {}, [], 0, 0

    def place(name, dtype, shape, data):
        nonlocal at
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)

    for name, dtype, array in tensors:
        if array.size and -at % ALIGN:
            place(f"__pad.{pads}", "U8", [-at % ALIGN], bytes(-at % ALIGN))
            pads += 1
        place(name, dtype, list(array.shape), memoryview(np.ascontiguousarray(array)).cast("B")
              if array.size else b"")
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGN)
    return write_file(path, [len(text).to_bytes(8, "little"), text, *parts])


def plain(value):
    """Reduces a value to what every JSON writer writes equally: no fractions, control characters or
    lone surrogates."""
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (int, bool)):
        return value
    return re.sub(r"[\x00-\x1f]", " ", str(value)).encode("utf-8", "replace").decode()


def seal(manifest: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of the compact JSON text with sorted names."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def check_ours(folder):
    """Refuses to replace or remove a folder that contains other files than those of a trace."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        raise FileExistsError(f"{folder} exists and is not a trace folder")
    for name in os.listdir(folder):
        if not OURS.fullmatch(name):
            raise FileExistsError(f"{folder} contains '{name}', which is no part of a trace")


def remove_folder(folder):
    if os.path.lexists(folder):
        check_ours(folder)
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        os.rmdir(folder)


def sync_folder(folder):
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def lock_folder(folder):
    """Locks a folder until the returned descriptor is closed, as `draftscope trace import` does."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise FileExistsError(f"{folder} is being written by another run") from None
    return fd


class TraceWriter:
    """recorded: "text" and names of the third column of OUTPUT_COLUMNS that every request has."""

    def __init__(self, path: Union[str, os.PathLike[str]], vocab_size: int,
                 recorded: Sequence[str] = (), *, tokenizer: str = "none",
                 tokenizer_sha256: str = "", eos: int = -1,
                 source: str = "python", force: bool = False) -> None:
        path = os.fspath(path)
        unknown = set(recorded) - {"text"} - {name for _, _, name in OUTPUT_COLUMNS}
        if unknown:
            raise ValueError(f"unknown columns in `recorded`: {', '.join(sorted(unknown))}")
        self.path, self.vocab_size, self.force = path.rstrip("/"), vocab_size, force
        self.per_output = [c for c in OUTPUT_COLUMNS if c[2] in recorded]
        self.columns = [c for c in REQUEST_COLUMNS if not c[2] or c[2] in recorded]
        self.columns += self.per_output
        self.manifest = {
            "schema": 1,
            "tokenizer": {"name": plain(tokenizer), "vocab_size": vocab_size,
                          "sha256": tokenizer_sha256, "eos": eos},
            "source": {"format": source, "semantics": "paper"},
            "recorded": ALWAYS + list(dict.fromkeys(c[2] for c in self.columns if c[2])),
            "totals": {}, "shards": [],
        }
        if "draft_rank" in recorded:
            self.manifest["parameters"] = {"rank_depth": 1}
        self.ids, self.longest = set(), {"max_prompt_tokens": 0, "max_output_tokens": 0}
        self.lock, self.temporary = None, self.path + ".tmp"
        self.check_target()
        self.make_folder()
        self.start_shard()

    def check_target(self):
        if os.path.lexists(self.path):
            if not self.force:
                raise FileExistsError(f"{self.path} exists already; force replaces it")
            check_ours(self.path)

    def make_folder(self):
        """Removes the folder of a killed run; fails if another run is writing it."""
        if os.path.isdir(self.temporary):
            fd = lock_folder(self.temporary)
            try:
                remove_folder(self.temporary)
            finally:
                os.close(fd)
        os.mkdir(self.temporary)
        self.lock = lock_folder(self.temporary)

    def start_shard(self):
        self.data = {name: [0] if dtype == "I64" else [] for name, dtype, _ in self.columns}
        self.count = dict.fromkeys(("requests", "prompt_tokens", "output_tokens",
                                    "reference_tokens", "references"), 0)
        self.row_bytes = 0

    def tokens(self, ids, what):
        return token_ids(ids, what, self.vocab_size - 1).astype("<u4")

    def piece(self, name, offset, array):
        self.data[name].append(array)
        self.data[offset].append(self.data[offset][-1] + len(array))

    def text(self, name, offset, text):
        self.piece(name, offset, np.frombuffer((text or "").encode(), np.uint8))

    def add(self, id: str, prompt: Any, output: Any, references: Sequence[Any] = (), *,
            kinds: Optional[Sequence[int]] = None, texts: Optional[Sequence[Any]] = None,
            metadata: Optional[Dict[str, Any]] = None,
            columns: Optional[Mapping[str, Any]] = None) -> None:
        """Adds a request. references: lists of token ids; kinds: a list of 0 (document) and 1
        (earlier turn); texts: prompt, output and the list of reference texts; metadata: a dict.
        columns: arrays by the tensor's name with one element per output token, or
        rows.X.offset [output + 1] from 0 with rows.X.token and rows.X.logp."""
        prompt, output = self.tokens(prompt, "prompt"), self.tokens(output, "output")
        references = [self.tokens(r, f"references[{i}]") for i, r in enumerate(references)]
        kinds = [0] * len(references) if kinds is None else kinds
        if len(kinds) != len(references):
            raise ValueError(f"kinds has {len(kinds)} elements; references has {len(references)}")
        if "prompt.text" in self.data and (texts is None or len(texts[2]) != len(references)):
            raise ValueError("texts must have the prompt, the output and a list of one text for "
                             "each reference: `recorded` has text")
        given = self.check_columns(columns or {}, len(output))
        if not id or id in self.ids:
            raise ValueError(f"the id '{id}' is empty or taken")
        if metadata is not None:
            metadata = json.dumps(metadata, separators=(",", ":"), ensure_ascii=False,
                                  allow_nan=False)
        self.ids.add(id)
        self.text("request.id", "request.id.offset", id)
        self.piece("prompt.tok", "prompt.offset", prompt)
        self.piece("output.tok", "output.offset", output)
        self.text("metadata", "metadata.offset", metadata)
        for r in references:
            self.piece("reference.tok", "reference.offset", r)
        self.piece("reference.kind", "request.reference", np.array(kinds, np.uint8))
        if "prompt.text" in self.data:
            self.text("prompt.text", "prompt.text.offset", texts[0])
            self.text("output.text", "output.text.offset", texts[1])
            for text in texts[2]:
                self.text("reference.text", "reference.text.offset", text)
        for name, array in given.items():
            if name.endswith(".offset"):
                self.data[name].extend((array[1:] + self.data[name][-1]).tolist())
            else:
                self.data[name].append(array)
        self.count_request(prompt, output, references, given)

    def check_columns(self, columns, n):
        known = {name: NUMPY[dtype] for name, dtype, _ in self.per_output}
        if set(columns) != set(known):
            raise ValueError(f"columns are {sorted(columns)}, but `recorded` requires "
                             f"{sorted(known)}")
        out = {}
        for name, dtype in known.items():
            bits16 = name.endswith(".dense") and np.asarray(columns[name]).dtype == np.uint16
            array = np.asarray(columns[name], "<u2" if bits16 else dtype)
            want = n + 1 if name.endswith(".offset") else n
            if name.startswith("rows.") and name.endswith((".token", ".logp")):
                want = int(out[name.rsplit(".", 1)[0] + ".offset"][-1])
            if len(array) != want or (name.endswith(".dense") and
                                      array.shape[1] != self.vocab_size):
                raise ValueError(f"{name} has shape {array.shape} instead of {want} elements")
            if name.endswith((".token", ".argmax")):
                self.tokens(array.reshape(-1), name)
            if array.dtype == "<f4" and not name.endswith("entropy"):
                finite = name == "target.logp_y" or name.endswith(".logp")
                bad = ~(array <= 0) | (finite & ~np.isfinite(array))
                if bad.any():
                    raise ValueError(f"{name}[{int(np.argmax(bad.ravel()))}] is not the logarithm "
                                     "of a probability" + (" above 0" if finite else ""))
            out[name] = array.reshape(n, 1) if name.endswith("rank_y") else array
        return out

    def count_request(self, prompt, output, references, given):
        for key, n in (("requests", 1), ("prompt_tokens", len(prompt)),
                       ("output_tokens", len(output)), ("references", len(references)),
                       ("reference_tokens", sum(map(len, references)))):
            self.count[key] += n
        for key, n in (("max_prompt_tokens", len(prompt)), ("max_output_tokens", len(output))):
            self.longest[key] = max(self.longest[key], n)
        self.row_bytes += sum(a.nbytes for name, a in given.items() if name.startswith("rows."))
        tokens = sum(self.count[k] for k in self.count if k.endswith("_tokens"))
        if tokens >= SHARD_TOKENS or self.row_bytes >= SHARD_ROW_BYTES:
            self.write_shard()

    def shape_of_nothing(self, name):
        return (0, self.vocab_size) if name.endswith(".dense") else \
            (0, 1) if name == "draft.rank_y" else (0,)

    def write_shard(self):
        tensors = []
        for name, dtype, _ in self.columns:
            data = self.data[name]
            if dtype == "I64":
                array = np.array(data, "<i8")
            elif data:
                array = np.concatenate(data)
                dtype = "BF16" if name.endswith(".dense") and array.dtype == "<u2" else dtype
            else:
                array = np.zeros(self.shape_of_nothing(name), NUMPY[dtype])
            tensors.append((name, dtype, array))
        file = f"shard-{len(self.manifest['shards']):05d}.safetensors"
        size, sha = write_safetensors(os.path.join(self.temporary, file), tensors)
        self.manifest["shards"].append({"file": file, **self.count, "bytes": size, "sha256": sha})
        self.start_shard()

    def commit(self, provenance: Mapping[str, Any]) -> str:
        """Publishes the trace and returns its hash. provenance: a dict of strings, integers, dicts
        and lists."""
        if self.count["requests"]:
            self.write_shard()
        m = self.manifest
        m["totals"] = {key: sum(s[key] for s in m["shards"]) for key in self.count} | self.longest
        names = "".join(s["sha256"] + "\n" for s in m["shards"])
        m["hash"] = hashlib.sha256(names.encode()).hexdigest()
        m["provenance"] = plain(provenance)
        m["manifest_sha256"] = seal(m)
        text = json.dumps(m, indent=1, ensure_ascii=False) + "\n"
        write_file(os.path.join(self.temporary, "manifest.json"), [text.encode()])
        sync_folder(self.temporary)
        self.publish()
        return str(m["hash"])

    def publish(self):
        """Renames the folder to its final name; an existing trace is moved aside first."""
        old = self.path + ".old"
        self.check_target()
        if os.path.lexists(self.path):
            remove_folder(old)  # left by a run that was killed after the next rename
            os.rename(self.path, old)
        os.rename(self.temporary, self.path)
        sync_folder(os.path.dirname(self.path) or ".")
        remove_folder(old)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        """Removes the folder if it was not committed."""
        if self.lock is not None:
            remove_folder(self.temporary)
            os.close(self.lock)
            self.lock = None
