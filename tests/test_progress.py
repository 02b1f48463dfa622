"""Long work tells a callback how far it is."""

import numpy as np
import pytest

import plaingrad
from plaingrad import progress


def told_by(work):
    told = []
    with progress.shown(lambda *how: told.append(how)):
        work()
    return told


def test_jacobians_in_both_modes():
    f = lambda x: x * x.sum()
    x = np.ones(5)
    told = told_by(lambda: plaingrad.jacobian(f, mode="forward", chunk_size=2)(x))
    assert told == [("jacobian, forward", n, 5) for n in (2, 4, 5)]
    told = told_by(lambda: plaingrad.jacobian(f, mode="reverse")(x))
    assert told == [("jacobian, reverse", n, 5) for n in range(1, 6)]


def test_sparse_jacobians():
    pytest.importorskip("scipy")
    told = told_by(lambda: plaingrad.sparse_jacobian(lambda x: x[1:] * x[:-1], np.ones(6)))
    assert told and told[-1][1] == 10 and told[-1][0].startswith("sparse, by")


def test_checkpointed_sequences_also_inside_another_derivative():
    def f(x):
        return plaingrad.checkpoint_sequence(lambda s: s * 1.1, x, 8, 3)

    told = told_by(lambda: plaingrad.grad(f)(1.0))
    assert told == [("checkpoint_sequence, back", n, 8) for n in range(2, 9)]
    found = []
    told = told_by(lambda: found.append(plaingrad.grad(plaingrad.grad(lambda x: f(x) ** 2))(1.0)))
    assert found[0] == pytest.approx(2 * 1.1**16) and told


def test_nothing_is_told_outside_and_exceptions_of_the_callback_end_the_work():
    told = told_by(lambda: None)
    plaingrad.jacobian(lambda x: x * x)(np.ones(3))
    assert told == []

    def stop(what, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress.shown(stop):
        plaingrad.jacobian(lambda x: x * x, mode="reverse")(np.ones(3))
    assert plaingrad.grad(lambda x: x * x)(3.0) == 6.0


def test_bars_of_tqdm(monkeypatch):
    import sys
    import types

    class Bar:
        made = []

        def __init__(self, desc, total):
            self.desc, self.total, self.n, self.closed = desc, total, 0, False
            self.made.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True

    auto = types.ModuleType("tqdm.auto")
    auto.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    with progress.shown():
        for _ in range(2):
            plaingrad.jacobian(lambda x: x * x, mode="reverse")(np.ones(3))
    assert [(bar.desc, bar.total, bar.n, bar.closed) for bar in Bar.made] == [("jacobian, reverse", 3, 3, True)] * 2


def test_native_derivations():
    pytest.importorskip("numba")
    told = told_by(lambda: plaingrad.grad(lambda x: x * 3.0 + 1.0, tier="native")(2.0))
    assert told and all(how[0].endswith(" of <lambda>, natively") for how in told)
    assert [how[1:] for how in told] == [(0, 1), (1, 1)] * (len(told) // 2)


def test_evaluations_of_minimize():
    pytest.importorskip("scipy")
    from plaingrad.optimize import minimize

    told = told_by(lambda: minimize(lambda x: ((x - 1.0) ** 2).sum(), np.zeros(2)))
    assert told and told == [("minimize", n, None) for n in range(1, len(told) + 1)]
