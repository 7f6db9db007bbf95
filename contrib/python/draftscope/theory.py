# SPDX-License-Identifier: Apache-2.0
"""Closed-form results on rows of probabilities, computed by the C library.

Letters: V tokens in the vocabulary, n positions, k drafts at a position. A row is a next-token
distribution, an array [V]; several are an array [n, V], and a function then returns one value for
each row. Rows are numpy arrays of float32 or float64 in C order, which the library reads in place:
nothing is copied. TypeError: another type; ValueError: another shape or order. A function releases
the global interpreter lock, so that threads run in parallel.

float64 rows sum to 1 within 1e-4 and results are exact to rounding. float32 rows are divided by
their sums, which are within 1e-4 of 1, and acceptances are within 1e-6, without sorting.

draftscope.Error (exit code 2 or 4) names the first row that is no distribution.
"""
from __future__ import annotations

import ctypes
import weakref
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from draftscope import _library as c
from draftscope._library import byref, check, library
from draftscope._program import Error

Rates = Union[float, Sequence[float], np.ndarray, str]
MAX_DRAFTS = 64
LONGEST = 1_000_000  # draft tokens of a block
TOLERANCE = 1e-4


# --- rows ----------------------------------------------------------------------------------------

def _row(name: str, array: Any, types: Tuple[Any, ...] = (np.float64, np.float32)) -> np.ndarray:
    """Checks that the library can read the array in place."""
    words = " or ".join(np.dtype(t).name for t in types)
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} is of the type {type(array).__name__}; a numpy array of {words} "
                        "is expected")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be ignored; use "
                        f"{name}.filled(0)")
    if array.dtype not in [np.dtype(t) for t in types]:
        raise TypeError(f"{name} has the type {array.dtype}; {words} is expected: use "
                        f"{name}.astype(numpy.{np.dtype(types[0]).name})")
    if array.ndim not in (1, 2) or not array.shape[-1]:
        raise ValueError(f"{name} has shape {array.shape}; [V] or [n, V] with V >= 1 is expected")
    if not array.flags.aligned:
        raise ValueError(f"{name} is not aligned in memory; use {name}.copy()")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous in C order; use "
                         f"numpy.ascontiguousarray({name})")
    return array


def _pair(draft: Any, target: Any, types: Tuple[Any, ...] = (np.float64, np.float32)) -> None:
    _row("draft", draft, types)
    _row("target", target, types)
    if draft.shape != target.shape:
        raise ValueError(f"draft has shape {draft.shape} and target {target.shape}; they must "
                         "match")
    if draft.dtype != target.dtype:
        raise TypeError(f"draft has the type {draft.dtype} and target {target.dtype}; they must "
                        "match")


def _addresses(*arrays: np.ndarray) -> Iterator[Tuple[int, ...]]:
    """The addresses of row i of all arrays, for each i."""
    rows = 1 if arrays[0].ndim == 1 else arrays[0].shape[0]
    start = [a.ctypes.data for a in arrays]
    step = [a.strides[0] if a.ndim == 2 else 0 for a in arrays]
    for i in range(rows):
        yield tuple(s + i * d for s, d in zip(start, step))


def _shaped(values: List[Any], draft: np.ndarray) -> Any:
    """One value for each row: a float for a single row, else an array."""
    return values[0] if draft.ndim == 1 else np.array(values)


def _where(draft: np.ndarray, i: int) -> str:
    return f"row {i}" if draft.ndim == 2 else ""


def _drafts(num_drafts: int, most: int) -> int:
    if isinstance(num_drafts, bool) or not isinstance(num_drafts, (int, np.integer)):
        raise TypeError(f"num_drafts is of the type {type(num_drafts).__name__}; an integer is "
                        "expected")
    if not 1 <= num_drafts <= most:
        raise ValueError(f"num_drafts is {num_drafts}; 1 to {most} drafts are possible")
    return int(num_drafts)


# --- one position --------------------------------------------------------------------------------

class Curve:
    """W(c) = sum over tokens of (target - c draft)+ of one pair of float64 rows [V], from which the
    acceptance of every rule follows. The tokens are sorted once, in O(V log V); each method then
    takes O(log V), k-Seq some steps more, the optimum O(V)."""

    def __init__(self, draft: np.ndarray, target: np.ndarray):
        _pair(draft, target, (np.float64,))
        if draft.ndim != 1:
            raise ValueError(f"draft has shape {draft.shape}; a curve is of one row [V]")
        self._curve = _new_curve(draft.ctypes.data, target.ctypes.data, draft.shape[0], "")
        self._fini = weakref.finalize(self, library().dsc_curve_fini, byref(self._curve))

    def w(self, at: float) -> float:
        """W(at) for at >= 0, in [0, 1]."""
        value = library().dsc_curve_w(byref(self._curve), at)
        if np.isnan(value):
            raise ValueError(f"W is not defined at {at}; at least 0 is expected")
        return float(value)

    def rejection(self) -> float:
        """Probability that rejection sampling accepts one draft: sum min(draft, target), SpecTr
        (Sun et al. 2023) Eq. (1), Leviathan et al. 2023 Alg. 1."""
        return float(library().dsc_single_acceptance(byref(self._curve)))

    def kseq(self, num_drafts: int) -> "KSeq":
        """k-Seq with the best valid rho for any number of drafts, SpecTr Alg. 2 and Eq. (6)."""
        s = library().dsc_kseq_best(byref(self._curve), _drafts(num_drafts, 2**31 - 1))
        return KSeq(s.accept, s.rho, s.beta)

    def specinfer(self, num_drafts: int) -> float:
        """SpecInfer with up to 1000 drafts sampled with replacement, Miao et al. 2023, Alg. 2."""
        k = _drafts(num_drafts, 1000)
        return float(library().dsc_specinfer_acceptance(byref(self._curve), k))

    def otm(self, num_drafts: int) -> float:
        """The largest acceptance of any lossless rule with i.i.d. drafts (optimal transport with
        membership cost, SpecTr Eq. (4)): 1 - max over r of draft(ratio <= r)^k -
        target(ratio <= r)."""
        k = _drafts(num_drafts, 2**31 - 1)
        return float(library().dsc_otm_value(byref(self._curve), k).accept)

    def otm_limit(self) -> float:
        """The limit of otm(k) for large k: the target's mass on the draft's support (SpecTr
        Lemma 1)."""
        return float(library().dsc_otm_limit(byref(self._curve)))


class KSeq(NamedTuple):
    """k-Seq: each draft x in turn is accepted with probability min(1, target(x)/(rho draft(x)))."""

    accept: Any  # probability that one of the drafts is accepted
    rho: Any  # the smallest valid divisor, in [1, k]
    beta: Any  # probability that a single draft is accepted


class Acceptance(NamedTuple):
    """Acceptance probabilities of one position with 1, ..., k drafts, of each row."""

    rejection: Any  # [] or [n] one draft
    specinfer: np.ndarray  # [k] or [n, k] SpecInfer, with replacement
    kseq: np.ndarray  # [k] or [n, k] k-Seq with the best rho
    kseq_rho: np.ndarray  # [k] or [n, k] that rho
    otm: np.ndarray  # [k] or [n, k] the optimum of all lossless rules


def _new_curve(draft: int, target: int, vocab: int, where: str) -> c.CurveC:
    curve, record = c.CurveC(), c.ErrorRecord()
    check(library().dsc_curve_init(byref(curve), draft, target, vocab, byref(record)), record,
          where)
    return curve


def _check_sums(name: str, rows: np.ndarray) -> None:
    """float32 rows: the library divides by the sums, which would make a row of logits one."""
    sums = np.atleast_1d(rows.sum(axis=-1, dtype=np.float64))
    bad = np.flatnonzero(~(np.abs(sums - 1) <= TOLERANCE))
    if len(bad):
        where, total = _where(rows, int(bad[0])), sums[bad[0]]
        why = "these look like logits (use theory.softmax) or unnormalized probabilities" \
            if np.isfinite(total) else "an element is nan or infinite"
        raise Error(f"{where + ': ' if where else ''}{name}: the sum is {total:.9g}, not 1: {why}",
                    4)


def _of_floats(draft: np.ndarray, target: np.ndarray, k: int) -> List[Any]:
    _check_sums("draft", draft)
    _check_sums("target", target)
    lib, record, work = library(), c.ErrorRecord(), ctypes.c_void_p()
    out: List[Any] = []
    check(lib.dsc_acceptance_work_new(byref(work), byref(record)), record)
    try:
        for i, (d, t) in enumerate(_addresses(draft, target)):
            found = (c.RuleAcceptanceC * k)()
            check(lib.dsc_acceptance_of_rows(d, t, draft.shape[-1], k, found, work, byref(record)),
                  record, _where(draft, i))
            out.append(found)
    finally:
        lib.dsc_acceptance_work_free(work)
    return out


def _of_doubles(draft: np.ndarray, target: np.ndarray, k: int) -> List[Any]:
    lib, counts = library(), (ctypes.c_int * k)(*range(1, k + 1))
    out: List[Any] = []
    for i, (d, t) in enumerate(_addresses(draft, target)):
        curve = _new_curve(d, t, draft.shape[-1], _where(draft, i))
        found = (c.RuleAcceptanceC * k)()
        lib.dsc_acceptance_of_curve(byref(curve), counts, k, found)
        lib.dsc_curve_fini(byref(curve))
        out.append(found)
    return out


def acceptance(draft: np.ndarray, target: np.ndarray, num_drafts: int = 8) -> Acceptance:
    """The acceptance probabilities of all rules with 1, ..., num_drafts i.i.d. drafts.

    Args:
        draft, target: [V] or [n, V], float32 or float64.
        num_drafts: the largest number of drafts at a position, 1 to 64.

    The rules are rejection sampling (Leviathan et al. 2023), SpecInfer (Miao et al. 2023), k-Seq
    and the optimum (SpecTr, Sun et al. 2023). For every row rejection <= specinfer <= kseq <= otm.
    """
    _pair(draft, target)
    k = _drafts(num_drafts, MAX_DRAFTS)
    found = (_of_floats if draft.dtype == np.float32 else _of_doubles)(draft, target, k)

    def values(name: str) -> np.ndarray:
        table = np.array([[getattr(x, name) for x in row] for row in found]).reshape(-1, k)
        return table[0] if draft.ndim == 1 else table

    return Acceptance(_shaped([row[0].single for row in found], draft),
                      values("specinfer"), values("kseq"), values("kseq_rho"), values("otm"))


def rejection(draft: np.ndarray, target: np.ndarray) -> Any:
    """Probability that rejection sampling accepts one draft: sum min(draft, target), that is 1
    minus the total variation distance. A float, or [n] for rows [n, V]."""
    return acceptance(draft, target, 1).rejection


def kseq(draft: np.ndarray, target: np.ndarray, num_drafts: int) -> Any:
    """Acceptance probability of k-Seq with num_drafts drafts (1 to 64) and the best rho: SpecTr
    (Sun et al. 2023) Alg. 2, Eq. (6). A float, or [n] for rows [n, V]. Curve.kseq returns rho."""
    return acceptance(draft, target, num_drafts).kseq[..., -1]


def specinfer(draft: np.ndarray, target: np.ndarray, num_drafts: int) -> Any:
    """Acceptance probability of SpecInfer with num_drafts drafts (1 to 64) sampled with
    replacement: Miao et al. 2023, Alg. 2. A float, or [n] for rows [n, V]."""
    return acceptance(draft, target, num_drafts).specinfer[..., -1]


def otm(draft: np.ndarray, target: np.ndarray, num_drafts: int) -> Any:
    """The largest acceptance probability of any lossless rule with num_drafts i.i.d. drafts (1 to
    64): SpecTr (Sun et al. 2023) Eq. (4). A float, or [n] for rows [n, V]."""
    return acceptance(draft, target, num_drafts).otm[..., -1]


def _optimum(function: str, draft: np.ndarray, target: np.ndarray, num_drafts: int) -> np.ndarray:
    _pair(draft, target, (np.float64,))
    k, record = _drafts(num_drafts, MAX_DRAFTS), c.ErrorRecord()
    rows = 1 if draft.ndim == 1 else draft.shape[0]
    out = np.empty((rows, k))
    call = getattr(library(), function)
    for i, (d, t) in enumerate(_addresses(draft, target)):
        check(call(d, t, draft.shape[-1], k, out[i].ctypes.data, byref(record)), record,
              _where(draft, i))
    return out[0] if draft.ndim == 1 else out


def otm_without_replacement(draft: np.ndarray, target: np.ndarray, num_drafts: int) -> np.ndarray:
    """The optimum for 1, ..., num_drafts drafts sampled without replacement (Hu et al. 2025, arXiv
    2502.18779), [k] or [n, k]; float64 rows. Absolute error below 1e-10."""
    return _optimum("dsc_otm_wor", draft, target, num_drafts)


def otm_greedy(draft: np.ndarray, target: np.ndarray, num_drafts: int) -> np.ndarray:
    """The optimum when the drafts are the k - 1 most probable tokens and one that is sampled from
    the others (Hu et al. 2025), for k = 1, ..., num_drafts: [k] or [n, k]; float64 rows."""
    return _optimum("dsc_otm_greedy", draft, target, num_drafts)


def residual(draft: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The distribution that rejection sampling draws from after a rejection, (target - draft)+
    divided by its sum, in an array of the shape of draft; float64 rows. 0 everywhere where the two
    rows are equal: nothing is rejected there. SpecTr Alg. 1."""
    _pair(draft, target, (np.float64,))
    out = np.empty_like(draft)
    for i, (d, t, r) in enumerate(_addresses(draft, target, out)):
        library().dsc_single_residual(d, t, draft.shape[-1], r)
        if np.isnan(out.reshape(-1, draft.shape[-1])[i, 0]):
            where = _where(draft, i)
            raise Error(f"{where + ': ' if where else ''}draft or target is not a distribution", 2)
    return out


def kseq_residual(draft: np.ndarray, target: np.ndarray, num_drafts: int) -> np.ndarray:
    """The distribution that k-Seq draws from when all num_drafts drafts are rejected, with the best
    rho: SpecTr Alg. 2. [V] or [n, V], float64."""
    _pair(draft, target, (np.float64,))
    k = _drafts(num_drafts, 2**31 - 1)
    lib, out = library(), np.empty_like(draft)
    for i, (d, t, r) in enumerate(_addresses(draft, target, out)):
        curve = _new_curve(d, t, draft.shape[-1], _where(draft, i))
        rule = lib.dsc_kseq_best(byref(curve), k)
        lib.dsc_curve_fini(byref(curve))
        lib.dsc_kseq_residual(byref(rule), d, t, draft.shape[-1], r)
    return out


def softmax(logits: np.ndarray, temperature: float = 1.0, top_k: int = 0,
            top_p: float = 1.0) -> np.ndarray:
    """The distribution that a sampler with these settings draws from, in the order of Hugging Face
    transformers: temperature, top-k, top-p.

    Args:
        logits: [V] or [n, V] of any floating-point type; -inf is allowed, but not everywhere.
        temperature: above 0; or 0: all mass on the first largest logit.
        top_k: keep the top_k largest logits; 0: all.
        top_p: in (0, 1], keep the most probable tokens with this total probability; 1: all.

    Returns a new float64 array of the same shape; the argument is not changed.
    """
    array = np.asarray(logits)
    if not np.issubdtype(array.dtype, np.floating):
        raise TypeError(f"logits have the type {array.dtype}; a floating-point type is expected")
    if isinstance(logits, np.ma.MaskedArray):
        raise TypeError("logits are a masked array, whose mask would be ignored; use "
                        "logits.filled(-numpy.inf)")
    if isinstance(top_k, bool) or not isinstance(top_k, (int, np.integer)) or top_k < 0:
        raise ValueError(f"top_k is {top_k}; an integer of at least 0 is expected (0: all)")
    temperature, top_p = float(temperature), float(top_p)
    out = np.array(array, np.float64, order="C")
    _row("logits", out)
    record = c.ErrorRecord()
    for i, (at,) in enumerate(_addresses(out)):
        check(library().dsc_probs_softmax(b"logits", at, out.shape[-1], temperature, top_k, top_p,
                                          byref(record)), record, _where(out, i))
    return out


# --- blocks --------------------------------------------------------------------------------------

def acceptance_rates(text: str, length: Optional[int] = None) -> np.ndarray:
    """Conditional acceptance rates by position, [length], of a text that --acceptance takes.

    text: rates:.917,.837,.648 (unconditional, as vLLM prints them by position), conditional:...,
    al:3.1@5 (mean acceptance length of drafts of 5 tokens), rate:.62@5 (accepted / drafted),
    iid:.7, histogram:20,10,5, or the path of a table of totals. length: by default as many
    positions as the text has. Positions that it does not know are NaN. Error: what is wrong with
    the text.
    """
    read, record = c.AcceptanceRatesC(), c.ErrorRecord()
    check(library().dsc_acceptance_rates_read(byref(read), text.encode(), byref(record)), record)
    try:
        out = np.empty(read.positions if length is None else length)
        library().dsc_acceptance_rates_fill(byref(read), len(out), out.ctypes.data)
    finally:
        library().dsc_acceptance_rates_fini(byref(read))
    return out


def _rates(acceptance: Rates, length: int) -> Tuple[c.AcceptanceC, Optional[np.ndarray]]:
    """The acceptance of drafts, and the array that must live as long as it is used."""
    if isinstance(acceptance, str):
        known = acceptance_rates(acceptance, length)
        acceptance = known[:np.argmax(np.isnan(known)) if np.isnan(known).any() else length]
        return c.AcceptanceC(0.0, acceptance.ctypes.data, len(acceptance)), acceptance
    if np.ndim(acceptance) == 0:
        return c.AcceptanceC(float(acceptance), None, 0), None  # type: ignore[arg-type]
    rates = np.ascontiguousarray(acceptance, np.float64)
    if rates.ndim != 1 or not len(rates):
        raise ValueError(f"acceptance has shape {rates.shape}; one rate, or rates by position [L], "
                         "is expected")
    return c.AcceptanceC(0.0, rates.ctypes.data, len(rates)), rates


def _length(name: str, length: Any) -> None:
    if isinstance(length, bool) or not isinstance(length, (int, np.integer)):
        raise TypeError(f"{name} is of the type {type(length).__name__}; an integer is expected")
    if not 0 <= length <= LONGEST:
        raise ValueError(f"{name} is {length}; 0 to {LONGEST} tokens are possible")


def block_accepted(acceptance: Rates, length: int) -> np.ndarray:
    """Expected accepted draft tokens for drafts of 0, 1, ..., length tokens, [length + 1].

    acceptance: the i.i.d. probability that a draft token is accepted (Leviathan et al. 2023), or
    conditional rates by position [L], L >= length: that of position j given that all before it were
    accepted, or a text of acceptance_rates(). The token that the target adds is not counted. Error: a rate is outside [0, 1].
    """
    _length("length", length)
    rates, _alive = _rates(acceptance, length)
    out, record = np.empty(length + 1), c.ErrorRecord()
    check(library().dsc_block_accepted(byref(rates), length, out.ctypes.data, byref(record)),
          record)
    return out


def block_efficiency(acceptance: Rates, length: int) -> float:
    """Expected tokens per target call with drafts of `length` tokens, the target's own included:
    (1 - a^(length + 1))/(1 - a) for an i.i.d. rate a, Leviathan et al. 2023, Eq. (1)."""
    return float(block_accepted(acceptance, length)[-1]) + 1


def iid_rate(accepted: float, length: int) -> float:
    """The i.i.d. acceptance rate at which drafts of `length` tokens have `accepted` accepted tokens
    in expectation (alpha_iid). NaN when accepted is outside [0, length] or length < 1."""
    return float(library().dsc_iid_rate(accepted, length))


def speedup(acceptance: Rates, length: int, draft_cost: float = 0.0, slope: float = 0.0) -> float:
    """Speedup over one token per target call: (accepted + 1)/(1 + length (draft_cost + slope)),
    Leviathan et al. 2023, Theorem 3.8.

    draft_cost: a draft token's cost, slope: that of one more token in the target call, both in
    units of a target call on one token. NaN when a cost is negative.
    """
    accepted = float(block_accepted(acceptance, length)[-1])
    return float(library().dsc_block_speedup(accepted, length, c.BlockCostC(draft_cost, slope)))


class BestLength(NamedTuple):
    """The best draft length; 0: no speculation."""

    length: int
    accepted: float  # expected accepted draft tokens
    speedup: float


def best_length(acceptance: Rates, longest: int, shortest: int = 0, draft_cost: float = 0.0,
                slope: float = 0.0) -> BestLength:
    """The draft length from `shortest` to `longest` with the greatest speedup, by trying all; the
    arguments are those of speedup()."""
    _length("shortest", shortest)
    _length("longest", longest)
    rates, _alive = _rates(acceptance, longest)
    best, record = c.BlockBestC(), c.ErrorRecord()
    check(library().dsc_block_best_length(byref(rates), shortest, longest,
                                          c.BlockCostC(draft_cost, slope), byref(best),
                                          byref(record)), record)
    return BestLength(best.length, best.accepted, best.speedup)


def conditional_rates(accepted: Any, drafted: Any) -> np.ndarray:
    """Conditional acceptance rates by position from steps (Kaplan-Meier estimate), [longest draft].

    accepted, drafted: [steps] integers, 0 <= accepted <= drafted <= 4096. A step that accepted all
    of its draft gives no information about the next position. NaN where no step reached a position.
    """
    a, d = np.asarray(accepted), np.asarray(drafted)
    if a.ndim != 1 or a.shape != d.shape:
        raise ValueError(f"accepted has shape {a.shape} and drafted {d.shape}; both must be "
                         "[steps]")
    if not (np.issubdtype(a.dtype, np.integer) and np.issubdtype(d.dtype, np.integer)):
        raise TypeError(f"accepted and drafted have the types {a.dtype} and {d.dtype}; integers "
                        "are expected")
    most = int(d.max(initial=0))
    if most > 4096:
        raise ValueError(f"a draft of {most} tokens; at most 4096 are possible")
    count, record = (c.ConditionalCountC * max(most, 1))(), c.ErrorRecord()
    steps, times = np.unique(np.stack([a, d]), axis=1, return_counts=True)
    for (m, length), n in zip(steps.T.tolist(), times.tolist()):
        check(library().dsc_conditional_add(count, most, m, length, n, byref(record)), record)
    return np.array([library().dsc_conditional_rate(byref(x)) for x in count[:most]])


class BlockVerification(NamedTuple):
    """Block verification of one draft of L tokens."""

    prefix: np.ndarray  # [L] Pr(at least i tokens are accepted | the draft), i = 1 .. L
    coin: np.ndarray  # [L] h_i: the accepted prefix is the longest i whose coin comes up


def block_verification(draft: np.ndarray, target: np.ndarray, tokens: Any) -> BlockVerification:
    """The probabilities of block verification along a draft (Sun et al. 2024, "Block Verification
    Accelerates Speculative Decoding", Alg. 2).

    Args:
        draft, target: [L, V] float64; row i is the distribution after the first i draft tokens.
        tokens: [L] ids of the draft tokens, each with a positive draft probability.

    Raises Error where a row is no distribution, ValueError for a token with draft probability 0.
    """
    _pair(draft, target, (np.float64,))
    ids = np.asarray(tokens)
    if draft.ndim != 2 or ids.shape != draft.shape[:1] or not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"draft has shape {draft.shape} and tokens {ids.shape}; [L, V] and "
                         "integers [L] are expected")
    if len(ids) and not 0 <= ids.min() <= ids.max() < draft.shape[1]:
        raise ValueError(f"a token is outside the vocabulary of {draft.shape[1]}")
    lib, length, p = library(), len(ids), 1.0
    prefix, coin = np.empty(length), np.empty(length)
    for i, (d, t) in enumerate(_addresses(draft, target)):
        curve = _new_curve(d, t, draft.shape[1], f"row {i}")
        if i:  # the residual mass after i tokens: sum (p target - draft)+ = p W(1/p)
            left = p * lib.dsc_curve_w(byref(curve), 1 / p) if p > 0 else 0.0
            coin[i - 1] = lib.dsc_block_coin(p, left)
        lib.dsc_curve_fini(byref(curve))
        if not draft[i, ids[i]] > 0:
            raise ValueError(f"tokens[{i}] has the draft probability 0: it cannot have been "
                             "drafted")
        p = prefix[i] = lib.dsc_block_ratio(p, draft[i, ids[i]], target[i, ids[i]])
    if length:
        coin[-1] = p
    return BlockVerification(prefix, coin)


# --- trees ---------------------------------------------------------------------------------------

class Tree:
    """A draft tree. Node 0, the root, is the last decided token; nodes 1, 2, ... are draft tokens,
    level by level.

    Attributes:
        parent, rank, level: [nodes] int32: the parent of each node, its place among the candidates
            there (0 for the best), and its depth; -1, -1, 0 for the root.
    """

    def __init__(self, shape: Union[str, Sequence[Sequence[int]]]):
        """shape: "chain:L", "K^D" (all K children down to depth D), "eagle", "medusa", or the draft
        tokens as paths of ranks from the root, in any order: [[0], [1], [0, 0]]."""
        tree, record = c.TreeC(), c.ErrorRecord()
        if isinstance(shape, str):
            rc = library().dsc_tree_named(byref(tree), shape.encode(), byref(record))
        else:
            text = "\n".join(",".join(str(int(r)) for r in path) for path in shape)
            rc = library().dsc_tree_parse(byref(tree), text.encode(), b"paths", byref(record))
        check(rc, record)
        self._take(tree)

    def _take(self, tree: c.TreeC) -> None:
        """Copies a tree of the library, and frees it."""
        self.parent, self.rank, self.level = (
            np.array(x[:tree.nodes], np.int32) for x in (tree.parent, tree.rank, tree.level))
        library().dsc_tree_fini(byref(tree))

    def __len__(self) -> int:
        """The number of nodes, the root included: tokens of a target call."""
        return len(self.parent)

    @property
    def depth(self) -> int:
        """The depth of the deepest node: draft forward passes of a step."""
        return int(self.level.max())

    def paths(self) -> List[Tuple[int, ...]]:
        """The ranks from the root to each draft token."""
        paths: List[Tuple[int, ...]] = [()]
        for parent, rank in zip(self.parent[1:], self.rank[1:]):
            paths.append((*paths[parent], int(rank)))
        return paths[1:]

    def expected(self, rates: Any) -> float:
        """Expected tokens per target call, the target's own included: the sum over nodes of the
        products of the rates on their paths (Sequoia, Chen et al. 2024).

        rates: [ranks] or [depths, ranks], Pr(the target's token is the candidate of this rank,
        below an accepted node of this depth). Error: a rate is missing, or siblings sum to
        more than 1.
        """
        dist, _alive = _tree_rates(rates)
        tree, record, value = c.TreeC(len(self), self.depth), c.ErrorRecord(), ctypes.c_double()
        pointer = ctypes.POINTER(ctypes.c_int32)
        for name in ("parent", "rank", "level"):
            array = np.ascontiguousarray(getattr(self, name), np.int32)
            setattr(self, name, array)
            setattr(tree, name, array.ctypes.data_as(pointer))
        check(library().dsc_tree_expect(byref(tree), byref(dist), None, byref(value),
                                        byref(record)), record)
        return float(value.value)

    def __repr__(self) -> str:
        return f"<Tree: {len(self) - 1} draft tokens, depth {self.depth}>"


def _tree_rates(rates: Any) -> Tuple[c.TreeAcceptanceC, np.ndarray]:
    array = np.ascontiguousarray(rates, np.float64)
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(f"rates have shape {array.shape}; [ranks] or [depths, ranks] is expected")
    depths = 1 if array.ndim == 1 else array.shape[0]
    return c.TreeAcceptanceC(array.ctypes.data, depths, array.shape[-1]), array


class BestTree(NamedTuple):
    """The tree with the greatest speedup."""

    tree: Tree
    expected: float  # expected tokens per target call
    speedup: float  # over one token per target call


def best_tree(rates: Any, nodes: int, depth: int, draft_cost: float = 0.0,
              target_cost: Any = None) -> BestTree:
    """The tree with the greatest speedup, by Sequoia's dynamic program (Chen et al. 2024).

    Args:
        rates: as of Tree.expected; with several rows at least `depth` of them.
        nodes: largest number of nodes, the root included, 1 to 1024.
        depth: largest depth, 0 to 64.
        draft_cost: of a draft forward pass, which makes one level.
        target_cost: [nodes] cost of a target call on 1, 2, ... tokens, in the unit of draft_cost;
            by default 1 for any number.
    """
    dist, _alive = _tree_rates(rates)
    target = np.ones(max(nodes, 1)) if target_cost is None else \
        np.ascontiguousarray(target_cost, np.float64)
    if target.ndim != 1 or len(target) < nodes or not (target > 0).all() or not draft_cost >= 0:
        raise ValueError(f"target_cost has shape {target.shape}; [nodes] with positive costs is "
                         "expected, and a draft_cost of at least 0")
    lib, plan, record, tree = library(), ctypes.c_void_p(), c.ErrorRecord(), c.TreeC()
    check(lib.dsc_tree_plan_new(byref(plan), byref(dist), nodes, depth, byref(record)), record)
    try:
        cost = c.TreeCostC(draft_cost, target.ctypes.data)
        best = lib.dsc_tree_plan_best(plan, byref(cost))
        check(lib.dsc_tree_plan_tree(plan, best.nodes, best.depth, byref(tree), byref(record)),
              record)
    finally:
        lib.dsc_tree_plan_free(plan)
    found = Tree.__new__(Tree)
    found._take(tree)
    return BestTree(found, best.expected, best.speedup)
