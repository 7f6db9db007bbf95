# SPDX-License-Identifier: Apache-2.0
"""The closed forms against numpy formulas, enumeration and published numbers."""
import itertools
import sys
import threading
import time

import numpy as np
import pytest

import draftscope
from draftscope import theory

A = np.array([.5, .3, .2]), np.array([.2, .3, .5])
B = np.array([.6, .25, .1, .05]), np.array([.1, .2, .3, .4])
# Draft, target, k, and the optimum, k-Seq, its rho, SpecInfer: linear programs and root finding in
# another program, to all printed digits.
GOLDEN = [
    (A, 2, .86, .791355287257, 1.456776436283, .76),
    (A, 3, .988, .858518605654, 1.792593028269, .808),
    (A, 4, 1, .906007167812, 2.030035839058, .8464),
    (B, 2, .5775, .550560386369, 1.670402575794, .5325),
    (B, 4, .77799375, .702875509755, 2.685836731702, .662231250000),
    (B, 8, .936579568711, .814473511234, 4.289470224680, .776168591836),
]


@pytest.mark.parametrize("pair, k, otm, kseq, rho, specinfer", GOLDEN)
@pytest.mark.parametrize("dtype, within", [(np.float64, 1e-11), (np.float32, 2e-6)])
def test_golden(pair, k, otm, kseq, rho, specinfer, dtype, within):
    draft, target = (x.astype(dtype) for x in pair)
    got = theory.acceptance(draft, target, k)
    assert theory.otm(draft, target, k) == pytest.approx(otm, abs=within)
    assert theory.kseq(draft, target, k) == pytest.approx(kseq, abs=within)
    assert theory.specinfer(draft, target, k) == pytest.approx(specinfer, abs=within)
    assert got.kseq_rho[-1] == pytest.approx(rho, abs=within * 10)
    assert (got.otm[-1], got.kseq[-1]) == (theory.otm(draft, target, k),
                                           theory.kseq(draft, target, k))


def w(draft, target, at):
    return np.maximum(target - at * draft, 0).sum(-1)


def test_curve_against_numpy(pairs):
    for draft, target in zip(*pairs):
        curve = theory.Curve(draft, target)
        for at in (0, .3, 1, 2.5, 100):
            assert curve.w(at) == pytest.approx(w(draft, target, at), abs=1e-12)
        assert curve.rejection() == pytest.approx(np.minimum(draft, target).sum(), abs=1e-12)
        assert curve.otm_limit() == pytest.approx(target[draft > 0].sum(), abs=1e-12)
        c = 0.0
        for k in range(1, 7):
            c += w(draft, target, c)  # SpecInfer: c <- c + W(c)
            assert curve.specinfer(k) == pytest.approx(1 - w(draft, target, c), abs=1e-12)
            order = np.argsort(np.divide(target, draft, out=np.full(50, np.inf), where=draft > 0))
            p = np.concatenate([[0], np.cumsum(draft[order])])
            q = np.concatenate([[0], np.cumsum(target[order])])
            assert curve.otm(k) == pytest.approx(1 - (p**k - q).max(), abs=1e-12)
            accept, rho, beta = curve.kseq(k)  # 1 - (1 - beta)^k = rho beta
            assert beta == pytest.approx(np.minimum(draft, target / rho).sum(), abs=1e-12)
            assert accept == pytest.approx(1 - (1 - beta)**k, abs=1e-12)
            assert accept == pytest.approx(rho * beta, abs=1e-9)


def test_rows_and_single_rows_agree(pairs):
    for dtype in (np.float64, np.float32):
        draft, target = (x.astype(dtype) for x in pairs)
        whole = theory.acceptance(draft, target, 5)
        assert whole.rejection.shape == (20,) and whole.otm.shape == (20, 5)
        for i in range(20):
            one = theory.acceptance(draft[i], target[i], 5)
            for name in theory.Acceptance._fields:
                np.testing.assert_array_equal(getattr(one, name), getattr(whole, name)[i])
        assert (whole.rejection[:, None] <= whole.specinfer + 1e-12).all()
        assert (whole.specinfer <= whole.kseq + 1e-12).all()
        assert (whole.kseq <= whole.otm + 1e-12).all()
        np.testing.assert_array_equal(theory.rejection(draft, target), whole.rejection)


def test_float32_is_certified(pairs):
    draft, target = (x.astype(np.float32) for x in pairs)
    exact = [x.astype(np.float64) / x.astype(np.float64).sum(1, keepdims=True)
             for x in (draft, target)]
    got, want = theory.acceptance(draft, target, 16), theory.acceptance(*exact, 16)
    for name in ("rejection", "specinfer", "kseq", "otm"):
        assert np.abs(getattr(got, name) - getattr(want, name)).max() < 1e-6


def sets_optimum(draft, target, probability_inside):
    """1 - max over token sets A of Pr(all drafts in A) - target(A), by trying all sets."""
    tokens = range(len(draft))
    subsets = itertools.chain.from_iterable(itertools.combinations(tokens, n)
                                            for n in range(len(draft) + 1))
    return 1 - max(probability_inside(a) - target[list(a)].sum() for a in subsets)


def test_optimum_without_replacement_against_enumeration():
    rng = np.random.default_rng(2)
    draft, target = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))

    def inside(a, k):
        return sum(np.prod([draft[x] / (1 - draft[list(order[:i])].sum())
                            for i, x in enumerate(order)])
                   for order in itertools.permutations(a, k))

    got = theory.otm_without_replacement(draft, target, 3)
    assert got == pytest.approx([sets_optimum(draft, target, lambda a: inside(a, k))
                                 for k in (1, 2, 3)], abs=1e-10)
    both = theory.otm_without_replacement(np.array([draft, draft]), np.array([target, target]), 3)
    np.testing.assert_array_equal(both, [got, got])


def test_greedy_optimum_against_its_formula(pairs):
    draft, target = pairs
    got = theory.otm_greedy(draft, target, 4)
    for i in range(20):
        order = np.argsort(-draft[i])
        for k in range(1, 5):
            top, rest = order[:k - 1], order[k - 1:]
            left = draft[i][rest] / (1 - draft[i][top].sum())
            want = target[i][top].sum() + np.minimum(left, target[i][rest]).sum()
            assert got[i, k - 1] == pytest.approx(want, abs=1e-12)


def test_residuals(pairs):
    draft, target = pairs
    want = np.maximum(target - draft, 0)
    np.testing.assert_allclose(theory.residual(draft, target),
                               want / want.sum(1, keepdims=True), atol=1e-12)
    assert (theory.residual(draft, draft) == 0).all()
    got = theory.kseq_residual(draft[0], target[0], 3)
    accept, rho, beta = theory.Curve(draft[0], target[0]).kseq(3)
    want = target[0] - np.minimum(draft[0], target[0] / rho) * accept / beta
    np.testing.assert_allclose(got, want / (1 - accept), atol=1e-9)
    assert got.sum() == pytest.approx(1)


def test_softmax():
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(4, 30)).astype(np.float32)
    before = logits.copy()
    exp = np.exp(logits.astype(np.float64) / 0.7)
    np.testing.assert_allclose(theory.softmax(logits, 0.7), exp / exp.sum(1, keepdims=True))
    np.testing.assert_array_equal(logits, before)
    top = theory.softmax(logits, top_k=3)
    assert ((top > 0).sum(1) == 3).all() and top.sum(1) == pytest.approx(1)
    assert theory.softmax(logits, 0).argmax(1).tolist() == logits.argmax(1).tolist()
    nucleus = theory.softmax(logits[0], top_p=0.5)
    kept = theory.softmax(logits[0])[nucleus > 0]
    assert kept.sum() >= 0.5 and kept.sum() - kept.min() < 0.5
    for wrong in ({"top_k": -1}, {"top_k": 2.0}, {"temperature": "hot"}):
        with pytest.raises(ValueError, match="top_k|hot"):
            theory.softmax(logits, **wrong)
    with pytest.raises(TypeError, match="masked"):
        theory.softmax(np.ma.masked_array(logits))


def test_blocks():
    a = 0.8
    for length in (0, 1, 5):
        assert theory.block_efficiency(a, length) == pytest.approx((1 - a**(length + 1)) / (1 - a))
    rates = [.5, .6, .9]
    assert theory.block_accepted(rates, 3) == pytest.approx([0, .5, .5 + .3, .5 + .3 + .27])
    assert theory.iid_rate(theory.block_accepted(a, 5)[-1], 5) == pytest.approx(a)
    assert theory.speedup(a, 5, 0.1) == pytest.approx(theory.block_efficiency(a, 5) / 1.5)
    best = theory.best_length(a, 20, draft_cost=0.1)
    by_length = [theory.speedup(a, n, 0.1) for n in range(21)]
    assert best.length == int(np.argmax(by_length))
    assert best.speedup == pytest.approx(max(by_length))
    assert np.isnan(theory.iid_rate(3, 2))
    with pytest.raises(draftscope.Error, match=r"rate") as e:
        theory.block_accepted(1.5, 2)
    assert e.value.exit_code == 2
    with pytest.raises(draftscope.Error):
        theory.block_accepted(rates, 4)
    for wrong, kind in ((-1, ValueError), (10**12, ValueError), (2.5, TypeError)):
        with pytest.raises(kind, match="length is"):
            theory.block_efficiency(a, wrong)
        with pytest.raises(kind, match="longest is"):
            theory.best_length(a, wrong)


def test_acceptance_rates():
    printed = "rates:.917,.837,.648,.538,.451,.348"  # by vLLM, with a mean acceptance length of 4.74
    assert theory.block_efficiency(printed, 6) == pytest.approx(4.739)
    assert theory.acceptance_rates(printed)[:2] == pytest.approx([.917, .837 / .917])
    assert theory.best_length(printed, 6, draft_cost=.05, slope=.01).length == 6
    same = ("rates:.7,.49,.343", "al:2.533@3", "histogram:300,210,147,343", "rate:51.1%@3")
    for text in same:
        assert theory.speedup(text, 3, .1) == pytest.approx(theory.speedup(.7, 3, .1))
    assert np.isnan(theory.acceptance_rates("rates:.9,.8", 3)).tolist() == [False, False, True]
    assert theory.block_efficiency("histogram:50,0,0", 9) == 1
    with pytest.raises(draftscope.Error, match="exceeds the 2 positions"):
        theory.block_efficiency("rates:.9,.8", 3)
    with pytest.raises(draftscope.Error, match="conditional: takes"):
        theory.block_efficiency("rates:.8,.9", 2)


def test_conditional_rates():
    accepted, drafted = np.array([0, 1, 2, 2, 3, 0]), np.array([3, 3, 2, 3, 3, 0])
    # Position 1: 4 of 5; 2: 3 of 4; 3: the step that drafted 2 is censored: 1 of 2.
    assert theory.conditional_rates(accepted, drafted) == pytest.approx([4 / 5, 3 / 4, 1 / 2])
    with pytest.raises(draftscope.Error):
        theory.conditional_rates(np.array([2]), np.array([1]))
    with pytest.raises(TypeError):
        theory.conditional_rates(np.array([.5]), np.array([1]))


def test_block_verification_is_lossless():
    """The first two output tokens have the target's distribution, by enumeration of all drafts."""
    rng = np.random.default_rng(4)
    vocab, length = 3, 2
    dists = {side: {path: rng.dirichlet(np.ones(vocab)) for n in range(length + 1)
                    for path in itertools.product(range(vocab), repeat=n)}
             for side in ("draft", "target")}
    output = np.zeros((vocab, vocab))
    for path in itertools.product(range(vocab), repeat=length):
        draft, target = (np.array([dists[side][path[:i]] for i in range(length)])
                         for side in ("draft", "target"))
        prefix, coin = theory.block_verification(draft, target, path)
        chance = np.prod([draft[i, x] for i, x in enumerate(path)])
        # Pr(at least i | draft) from the coins, longest first, against `prefix` in the mean: here
        # the distribution of the accepted length given the whole draft.
        left = 1.0
        for n in range(length, -1, -1):
            stop = left * (coin[n - 1] if n else 1.0)
            left -= stop
            if n == length:
                output[path] += chance * stop
                continue
            p = prefix[n - 1] if n else 1.0
            rest = np.maximum(p * dists["target"][path[:n]] - dists["draft"][path[:n]], 0)
            for x in range(vocab):
                if n == 1:
                    output[path[0], x] += chance * stop * rest[x] / rest.sum()
                else:
                    share = chance * stop * rest[x] / rest.sum()
                    output[x] += share * dists["target"][(x,)]
    want = dists["target"][()][:, None] * np.array([dists["target"][(x,)] for x in range(vocab)])
    np.testing.assert_allclose(output, want, atol=1e-12)


def test_block_verification_refuses():
    draft = np.array([[.5, .5], [1., 0.]])
    with pytest.raises(ValueError, match="cannot have been drafted"):
        theory.block_verification(draft, draft, [0, 1])
    with pytest.raises(ValueError, match="outside the vocabulary"):
        theory.block_verification(draft, draft, [0, 2])
    with pytest.raises(ValueError, match=r"tokens \(1,\)"):
        theory.block_verification(draft, draft, [0])


def test_trees():
    rates = [.6, .2, .1]
    chain = theory.Tree("chain:3")
    assert (len(chain), chain.depth, chain.paths()) == (4, 3, [(0,), (0, 0), (0, 0, 0)])
    assert chain.expected([.5, .3]) == pytest.approx(1 + .5 + .25 + .125)
    assert len(theory.Tree("eagle")) == 26 and len(theory.Tree("medusa")) == 64
    by_hand = theory.Tree([(0, 1), (1,), (0,)])
    assert by_hand.paths() == [(0,), (1,), (0, 1)]
    assert by_hand.expected([rates, [.5, .4, 0]]) == pytest.approx(1 + .6 + .2 + .6 * .4)
    for shape in ("nothing", [(1, 0)]):
        with pytest.raises(draftscope.Error):
            theory.Tree(shape)
    with pytest.raises(draftscope.Error, match="rank"):
        theory.Tree([(5,), (0,)]).expected(rates)


def test_best_tree_against_all_trees():
    rates, nodes, cost = np.array([.6, .3]), 5, 0.15
    target = np.array([1, 1.05, 1.1, 1.2, 1.4])

    def trees(found):  # all trees whose children have no gaps
        yield found
        if len(found) < nodes - 1:
            for path in [(), *found]:
                child = (*path, sum(len(x) == len(path) + 1 and x[:-1] == path for x in found))
                if child[-1] < 2 and (not found or child > max(found)):
                    yield from trees([*found, child])

    def value(found):
        depth = max((len(x) for x in found), default=0)
        expected = 1 + sum(np.prod(rates[list(x)]) for x in found)
        return expected * target[0] / (depth * cost + target[len(found)])

    best = theory.best_tree(rates, nodes, 4, cost, target)
    assert best.speedup == pytest.approx(max(value(x) for x in trees([])))
    assert best.expected == pytest.approx(best.tree.expected(rates))
    assert best.speedup == pytest.approx(value(best.tree.paths()))


# --- what is refused -----------------------------------------------------------------------------

DRAFT = np.full((2, 4), .25)


@pytest.mark.parametrize("function", [
    lambda d, t: theory.acceptance(d, t, 2), theory.rejection, lambda d, t: theory.kseq(d, t, 2),
    lambda d, t: theory.specinfer(d, t, 2), lambda d, t: theory.otm(d, t, 2),
    lambda d, t: theory.otm_without_replacement(d, t, 2), lambda d, t: theory.otm_greedy(d, t, 2),
    theory.residual, lambda d, t: theory.kseq_residual(d, t, 2),
    lambda d, t: theory.Curve(d, t)])
@pytest.mark.parametrize("kind, words, draft, target", [
    (TypeError, "of the type list", [.5, .5], np.array([.5, .5])),
    (TypeError, "int64", np.ones(4, np.int64), DRAFT[0]),
    (TypeError, "float16", DRAFT.astype(np.float16), DRAFT),
    (TypeError, ">f8", DRAFT[0].astype(">f8"), DRAFT[0]),
    (ValueError, r"\(1, 2, 4\)", DRAFT[None], DRAFT[None]),
    (ValueError, r"\(0,\)", np.ones(0), np.ones(0)),
    (ValueError, "shape", DRAFT, DRAFT[:, :3].copy()),
    (ValueError, "shape", DRAFT, DRAFT[0]),
    (ValueError, "contiguous", np.asfortranarray(np.ones((2, 4)) / 4), DRAFT),
    (ValueError, "contiguous", np.full(8, .25)[::2], DRAFT[0]),
    (ValueError, "contiguous", np.broadcast_to(DRAFT[0], (2, 4)), DRAFT),
    (ValueError, "not aligned", np.frombuffer(b"_" + DRAFT.tobytes(), np.uint8)[1:].view("f8"),
     DRAFT.reshape(-1)),
    (TypeError, "masked", np.ma.masked_array(DRAFT, [[True] + 3 * [False]] * 2), DRAFT),
])
def test_wrong_arrays(function, kind, words, draft, target):
    with pytest.raises(kind, match=words):
        function(draft, target)


def test_types_must_match():
    with pytest.raises(TypeError, match="match"):
        theory.rejection(DRAFT, DRAFT.astype(np.float32))


@pytest.mark.parametrize("bad", [[.5, .5, .5, .5], [1.5, -.5, 0, 0], [np.nan, 1, 0, 0]])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_are_no_distributions(bad, dtype):
    rows = DRAFT.astype(dtype)
    rows[1] = bad
    with pytest.raises(draftscope.Error, match="^row 1: (?!dsc_)") as e:
        theory.otm(rows, DRAFT.astype(dtype), 2)
    assert e.value.exit_code in (2, 4)
    assert not np.isnan(bad[0]) or "logits" not in str(e.value)
    with pytest.raises(draftscope.Error):
        theory.otm(DRAFT.astype(dtype), rows, 2)


@pytest.mark.parametrize("k, kind", [(0, ValueError), (65, ValueError), (-1, ValueError),
                                     (1.0, TypeError), (True, TypeError)])
def test_number_of_drafts(k, kind):
    with pytest.raises(kind, match="num_drafts"):
        theory.otm(DRAFT, DRAFT, k)


# --- how the rows are read -----------------------------------------------------------------------

def test_rows_are_read_in_place(tmp_path):
    """Rows of a read-only mapping, and rows inside a larger array, need no copy."""
    rng = np.random.default_rng(5)
    rows = rng.dirichlet(np.ones(100), 6).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    want = theory.otm(rows[:3].copy(), rows[3:].copy(), 4)
    np.testing.assert_array_equal(theory.otm(mapped[:3], mapped[3:], 4), want)
    addresses = [a for a, in theory._addresses(mapped[3:])]
    assert addresses == [mapped.ctypes.data + i * 400 for i in (3, 4, 5)]


def test_lock_is_released():
    """While one thread is inside the library, another one runs Python code. With the lock held, no
    time of the other thread lies in the middle of the call."""
    rng = np.random.default_rng(6)
    draft, target = rng.dirichlet(np.ones(400000), 2)
    theory.otm_without_replacement(draft[:100] / draft[:100].sum(), target[:100]
                                   / target[:100].sum(), 1)  # loads the library
    span = []

    def call():
        begin = time.perf_counter()
        theory.otm_without_replacement(draft, target, 32)
        span.extend([begin, time.perf_counter()])

    thread, times = threading.Thread(target=call), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    thread.start()
    while thread.is_alive():
        times.append(time.perf_counter())
        time.sleep(1e-4)
    thread.join()
    sys.setswitchinterval(interval)
    begin, end = span
    middle = [t for t in times if begin + (end - begin) / 4 < t < end - (end - begin) / 4]
    assert middle


def test_threads_agree(pairs):
    draft, target = pairs
    want = theory.acceptance(draft, target, 8)
    got = [None] * 4

    def work(i):
        for _ in range(20):
            got[i] = theory.acceptance(draft, target, 8)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for one in got:
        for a, b in zip(one, want):
            np.testing.assert_array_equal(a, b)
