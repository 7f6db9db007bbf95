# SPDX-License-Identifier: Apache-2.0
"""Traces: recorded prompts, outputs and references, read as numpy views of the mapped files.

The format is that of draftscope-trace(5). Views are read-only and stay valid as long as they are
referenced; nothing is copied but distributions in BF16.
"""
from __future__ import annotations

import json
import os
import tempfile
import weakref
from types import MappingProxyType
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from draftscope import _program
from draftscope._program import Error
from draftscope._writer import TraceWriter, seal, token_ids

Path = Union[str, "os.PathLike[str]"]
Tokens = Union[np.ndarray, Sequence[int]]

SCHEMA = 1
TYPES = {"U8": "<u1", "U16": "<u2", "BF16": "<u2", "U32": "<u4", "I64": "<i8", "F32": "<f4"}
SIDES = ("draft", "target")
# Tensors with one element, or one row, for each output token: names before the first dot.
PER_OUTPUT_TOKEN = ("draft", "target", "accept", "stat", "rollout")


class Reference(NamedTuple):
    """A text that was given to the model, or an earlier turn of the conversation."""

    kind: str  # "document" or "turn"
    tokens: np.ndarray  # [n] int32 token ids
    text: Optional[str]  # None: the trace contains no text


class Row(NamedTuple):
    """A next-token distribution; natural logarithms."""

    tokens: np.ndarray  # [n] int32 ids of the listed tokens; of a dense row all of the vocabulary
    logp: np.ndarray  # [n] float32 their log-probabilities
    tail: float  # ln of the total probability of the others; -inf: none


class Request:
    """One recorded request. Arrays are read-only views of the trace."""

    __slots__ = ("_shard", "_i", "index")

    def __init__(self, shard: "_Shard", i: int, index: int):
        self._shard, self._i = shard, i
        self.index = index  # 0-based, in the whole trace

    @property
    def id(self) -> str:
        """Unique in the trace: the id in the source, or a number."""
        return self._shard.text("request.id", "request.id.offset", self._i)

    @property
    def prompt(self) -> np.ndarray:
        """[n] int32 token ids of the prompt."""
        return self._shard.part("prompt.tok", "prompt.offset", self._i)

    @property
    def output(self) -> np.ndarray:
        """[n] int32 token ids of the output, EOS included."""
        return self._shard.part("output.tok", "output.offset", self._i)

    @property
    def metadata(self) -> Dict[str, Any]:
        """The metadata object of the source; {} when there is none."""
        value = json.loads(self._shard.text("metadata", "metadata.offset", self._i) or "{}")
        return dict(value)

    @property
    def references(self) -> List[Reference]:
        """The references of the request, in their order."""
        s = self._shard
        first, end = s.tensor("request.reference")[self._i:self._i + 2].tolist()
        return [Reference("turn" if s.tensor("reference.kind")[r] else "document",
                          s.part("reference.tok", "reference.offset", r),
                          s.text("reference.text", "reference.text.offset", r)
                          if s.has("reference.text") else None) for r in range(first, end)]

    @property
    def prompt_text(self) -> Optional[str]:
        """The prompt as in the source; None when the trace contains no text."""
        return self._text("prompt.text")

    @property
    def output_text(self) -> Optional[str]:
        """The output as in the source; None when the trace contains no text."""
        return self._text("output.text")

    def _text(self, name: str) -> Optional[str]:
        s = self._shard
        return s.text(name, name + ".offset", self._i) if s.has(name) else None

    def columns(self) -> List[str]:
        """Names of the recorded columns of this request, for column()."""
        return [name for name in self._shard.names() if self._offset_of(name)]

    @staticmethod
    def _offset_of(name: str) -> Optional[str]:
        group, _, rest = name.partition(".")
        if group in PER_OUTPUT_TOKEN:
            return "output.offset"
        return "step.offset" if group == "step" and rest != "offset" else None

    def column(self, name: str) -> np.ndarray:
        """Returns the request's part of a tensor: [n] or [n, ...] for n output tokens (or steps,
        for names that begin with "step."). Names and types are those of draftscope-trace(5), such
        as "target.logp_y", "draft.rank_y", "accept.NAME"; columns() lists those of the trace.

        Raises KeyError when the trace does not contain it.
        """
        offset = self._offset_of(name)
        if not offset or not self._shard.has(name):
            raise KeyError(f"the trace has no column '{name}'; it has {self.columns()}")
        return self._shard.part(name, offset, self._i)

    def rows(self, side: str) -> Optional[List[Row]]:
        """Returns the distributions of the "draft" or "target" model at the output positions: row j
        is that of output[j], given the prompt and output[:j]. None: not recorded."""
        if side not in SIDES:
            raise ValueError(f"side is '{side}'; it must be 'draft' or 'target'")
        s, name = self._shard, f"rows.{side}"
        first, end = s.tensor("output.offset")[self._i:self._i + 2].tolist()
        if s.has(name + ".dense"):
            dense = s.tensor(name + ".dense")
            tokens = np.arange(dense.shape[1], dtype=np.int32)
            return [Row(tokens, _float32(dense[j], s.is_bf16(name + ".dense")), -np.inf)
                    for j in range(first, end)]
        if not s.has(name + ".token"):
            return None
        return [Row(s.part(name + ".token", name + ".offset", j),
                    s.part(name + ".logp", name + ".offset", j),
                    float(s.tensor(name + ".tail")[j])) for j in range(first, end)]

    def __repr__(self) -> str:
        return (f"<Request {self.index} '{self.id}': {len(self.prompt)} prompt tokens, "
                f"{len(self.output)} output tokens>")


def _float32(row: np.ndarray, bf16: bool) -> np.ndarray:
    return (row.astype("<u4") << 16).view("<f4") if bf16 else row


class _Shard:
    """One mapped safetensors file."""

    def __init__(self, path: str, first: int):
        self.path, self.first = path, first
        size = os.path.getsize(path)
        self._bytes = np.memmap(path, np.uint8, "r", shape=(size,)) if size else np.zeros(0, "u1")
        length = int.from_bytes(self._bytes[:8].tobytes(), "little")
        try:
            if size < 8 or length > size - 8:
                raise ValueError(f"the header of {length} bytes is longer than the file")
            self._header = json.loads(self._bytes[8:8 + length].tobytes())
            self._start = 8 + length
            self._tensors: Dict[str, np.ndarray] = {}
            self.requests = len(self.tensor("request.reference")) - 1
        except (ValueError, KeyError, TypeError) as e:
            raise Error(f"{path}: not a shard of a trace: {e}; check it with draftscope trace "
                        "verify", 4) from None

    def has(self, name: str) -> bool:
        return name in self._header

    def names(self) -> List[str]:
        return sorted(n for n in self._header if not n.startswith("__"))

    def is_bf16(self, name: str) -> bool:
        return bool(self._header[name]["dtype"] == "BF16")

    def tensor(self, name: str) -> np.ndarray:
        """A view of the file; token ids, which are below 2^31, as int32."""
        if name not in self._tensors:
            about = self._header[name]
            begin, end = about["data_offsets"]
            if not 0 <= begin <= end <= len(self._bytes) - self._start:
                raise ValueError(f"tensor {name} lies outside the file")
            data = self._bytes[self._start + begin:self._start + end].view(np.ndarray)
            array = data.view(TYPES[about["dtype"]]).reshape(about["shape"])
            self._tensors[name] = array.view("<i4") if about["dtype"] == "U32" else array
        return self._tensors[name]

    def part(self, name: str, offset: str, i: int) -> np.ndarray:
        begin, end = self.tensor(offset)[i:i + 2].tolist()
        return self.tensor(name)[begin:end]

    def text(self, name: str, offset: str, i: int) -> str:
        return self.part(name, offset, i).tobytes().decode("utf-8")


class Trace:
    """A recorded trace, a sequence of Request. Made by Trace.open, Trace.import_ and
    Trace.from_arrays; functions that run a command take it in place of its path."""

    def __init__(self, path: Path, folder: Optional["tempfile.TemporaryDirectory[str]"] = None):
        self.path = os.fspath(path)
        self._folder = folder  # kept until the trace is collected
        self._manifest = _read_manifest(self.path)
        firsts, first = [], 0
        for shard in self._manifest["shards"]:
            firsts.append(first)
            first += shard["requests"]
        self._firsts, self._requests = firsts, first
        self._shards: "weakref.WeakValueDictionary[int, _Shard]" = weakref.WeakValueDictionary()

    @classmethod
    def open(cls, path: Path) -> "Trace":
        """Opens a trace folder, NAME.dst. Files are mapped when a request of theirs is read.

        Raises Error (exit code 4) when it is no trace or its manifest was changed.
        """
        return cls(path)

    @classmethod
    def import_(cls, *logs: Path, output: Optional[Path] = None, **options: Any) -> "Trace":
        """Imports logs in any format of draftscope trace import.

        Args:
            logs: files of JSON lines or JSON documents, also .gz and .zst.
            output: trace folder to write, NAME.dst; by default a temporary one, which is removed
                with the returned object.
            options: options of draftscope trace import, such as tokenizer="tokenizer.json",
                vocab_size=32000, format="vllm", on_error="skip".

        Raises Error, with file and line number for bad input.
        """
        if not logs:
            raise ValueError("import_: no log files are given")
        folder, path = _place(output)
        _program.run(["trace", "import", *_program.options(options), "--progress=never",
                      *[os.fspath(x) for x in logs], "-o", path])
        return cls(path, folder)

    @classmethod
    def from_arrays(cls, outputs: Sequence[Tokens], prompts: Optional[Sequence[Tokens]] = None, *,
                    references: Optional[Sequence[Sequence[Tokens]]] = None,
                    ids: Optional[Sequence[str]] = None,
                    metadata: Optional[Sequence[Optional[Mapping[str, Any]]]] = None,
                    logprobs: Optional[Sequence[Sequence[float]]] = None,
                    vocab_size: Optional[int] = None, path: Optional[Path] = None,
                    force: bool = False) -> "Trace":
        """Writes a trace from token ids.

        Args:
            outputs: for each request the token ids of its output, an integer array [n] or a list.
            prompts, references, ids, metadata: for each request its prompt, a list of reference
                texts, a unique id, an object for the metadata; by default empty; ids are
                numbers.
            logprobs: for each request [n], ln of the target's probability of each output token.
            vocab_size: every token id is below it; by default the largest id + 1.
            path: trace folder to write, NAME.dst; by default a temporary one, which is removed with
                the returned object.
            force: replace an existing trace.

        Raises TypeError for arrays that are not of integers, ValueError for other shapes, lengths
        that differ and ids outside the vocabulary.
        """
        rows = [token_ids(x, f"outputs[{i}]") for i, x in enumerate(outputs)]
        given: Dict[str, Any] = {"prompts": prompts, "references": references, "ids": ids,
                                 "metadata": metadata, "logprobs": logprobs}
        for name, values in given.items():
            if values is not None and len(values) != len(rows):
                raise ValueError(f"{name} has {len(values)} elements; outputs has {len(rows)}")
        before = [token_ids(x, f"prompts[{i}]") for i, x in enumerate(prompts)] if prompts is not None \
            else [np.zeros(0, np.int64)] * len(rows)
        texts = [[token_ids(x, f"references[{i}][{j}]") for j, x in enumerate(one)]
                 for i, one in enumerate(references)] \
            if references is not None else [[]] * len(rows)
        if vocab_size is None:
            every = [x for x in [*rows, *before, *(t for one in texts for t in one)] if len(x)]
            vocab_size = max((int(x.max()) for x in every), default=0) + 1
        folder, place = _place(path)
        with TraceWriter(place, vocab_size, ["target_logp"] if logprobs is not None else [],
                         force=force) as writer:
            for i, row in enumerate(rows):
                columns = {"target.logp_y": logprobs[i]} if logprobs is not None else None
                about = metadata[i] if metadata is not None else None
                writer.add(str(ids[i]) if ids is not None else str(i), before[i], row, texts[i],
                           metadata=dict(about) if about is not None else None, columns=columns)
            writer.commit({"command": "draftscope.Trace.from_arrays"})
        return cls(place, folder)

    @property
    def info(self) -> Mapping[str, Any]:
        """The manifest of draftscope-trace(5): tokenizer, recorded, totals, hash, ..."""
        return MappingProxyType(self._manifest)

    @property
    def hash(self) -> str:
        """SHA-256 that identifies the content; result tables contain it as trace_hash."""
        return str(self._manifest["hash"])

    @property
    def vocab_size(self) -> int:
        """Every token id is below it."""
        return int(self._manifest["tokenizer"]["vocab_size"])

    @property
    def requests(self) -> Iterator[Request]:
        """The requests, in their order."""
        return iter(self)

    def summary(self) -> Dict[str, Any]:
        """Returns what draftscope trace info --json prints: counts, lengths, the acceptance
        metrics of recorded steps."""
        out, _ = _program.run(["trace", "info", "--json", self.path])
        return dict(json.loads(out))

    def verify(self) -> None:
        """Checks every byte against the manifest. Raises Error (exit code 4) at a defect."""
        _program.run(["trace", "verify", self.path])

    def _shard(self, s: int) -> _Shard:
        shard = self._shards.get(s)
        if shard is None:
            about = self._manifest["shards"][s]
            path = os.path.join(self.path, about["file"])
            try:
                shard = _Shard(path, self._firsts[s])
            except OSError as e:
                raise Error(f"{path}: {e.strerror}", 4) from None
            if len(shard._bytes) != about["bytes"] or shard.requests != about["requests"]:
                raise Error(f"{path}: the file has changed since the manifest was written", 4)
            self._shards[s] = shard
        return shard

    def __len__(self) -> int:
        return self._requests

    def __iter__(self) -> Iterator[Request]:
        for s, first in enumerate(self._firsts):
            shard = self._shard(s)
            for i in range(shard.requests):
                yield Request(shard, i, first + i)

    def __getitem__(self, index: int) -> Request:
        i = index + len(self) if index < 0 else index
        if not 0 <= i < len(self):
            raise IndexError(f"request {index}; the trace has {len(self)} requests")
        s = int(np.searchsorted(self._firsts, i, "right")) - 1
        return Request(self._shard(s), i - self._firsts[s], i)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        totals = self._manifest["totals"]
        return (f"<Trace '{self.path}': {len(self)} requests, {totals['prompt_tokens']} prompt "
                f"tokens, {totals['output_tokens']} output tokens>")


def _place(path: Optional[Path]) -> Tuple[Optional["tempfile.TemporaryDirectory[str]"], str]:
    """Where to write a trace: the given path, or one in a new temporary folder."""
    if path is not None:
        return None, os.fspath(path)
    folder = tempfile.TemporaryDirectory(prefix="draftscope-")
    return folder, os.path.join(folder.name, "trace.dst")


def _read_manifest(folder: str) -> Dict[str, Any]:
    path = os.path.join(folder, "manifest.json")
    try:
        with open(path, encoding="utf-8") as f:
            manifest = json.load(f)
        schema = manifest["schema"]
        if schema != SCHEMA:
            raise Error(f"{path}: schema {schema}; this version reads schema {SCHEMA}", 4)
        sealed = {k: v for k, v in manifest.items() if k != "manifest_sha256"}
        if seal(sealed) != manifest["manifest_sha256"]:
            raise Error(f"{path}: its SHA-256 is not manifest_sha256: the manifest was changed", 4)
    except NotADirectoryError:
        raise Error(f"{folder} is not a trace. Import it first: draftscope.import_({folder!r})",
                    4) from None
    except OSError as e:
        raise Error(f"{path}: {e.strerror}", 4) from None
    except (ValueError, KeyError, TypeError) as e:
        raise Error(f"{path}: not the manifest of a trace: {e}", 4) from None
    return dict(manifest)


def import_(*logs: Path, output: Optional[Path] = None, **options: Any) -> Trace:
    """Imports logs as a trace; see Trace.import_."""
    return Trace.import_(*logs, output=output, **options)
