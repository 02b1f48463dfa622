"""Updated QR factors: those of the changed matrix."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

linalg = pytest.importorskip("scipy.linalg")
A = np.cos(np.arange(16.0) ** 1.2).reshape(4, 4) + 2 * np.eye(4)
TALL = np.cos(np.arange(20.0) ** 1.2).reshape(5, 4) + 2 * np.eye(5, 4)
V = np.array([0.3, -0.7, 1.1, 0.4])
W = np.append(V, 0.2)


def whole(factors):
    return np.concatenate([np.ravel(part) for part in factors])


def test_updates():
    agrees(lambda x: whole(linalg.qr_update(*linalg.qr(x), V, x[0])), A)
    agrees(lambda v: whole(linalg.qr_update(*linalg.qr(A), v, V)), V, nested=False)
    agrees(lambda x: whole(linalg.qr_update(*linalg.qr(x, mode="economic"), W, V)), TALL, nested=False)
    agrees(lambda x: linalg.qr_update(*linalg.qr(x), W, V)[1], TALL, nested=False)
    two = np.stack([V, V * V], 1)
    agrees(lambda x: whole(linalg.qr_update(*linalg.qr(x), two, np.stack([V[::-1], x[1]], 1))), A, nested=False)


def test_rows_and_columns_that_come_and_go():
    agrees(lambda x: whole(linalg.qr_delete(*linalg.qr(x), 1)), A)
    agrees(lambda x: whole(linalg.qr_delete(*linalg.qr(x), 0, 2)), A, nested=False)
    agrees(lambda x: whole(linalg.qr_delete(*linalg.qr(x), -1)), A, nested=False)
    agrees(lambda x: whole(linalg.qr_delete(*linalg.qr(x, mode="economic"), 1, 1, "col")), TALL, nested=False)
    agrees(lambda x: whole(linalg.qr_insert(*linalg.qr(x), V, 1, "col")), A)
    agrees(lambda x: whole(linalg.qr_insert(*linalg.qr(x), V, -1, "col")), A, nested=False)
    agrees(lambda x: whole(linalg.qr_insert(*linalg.qr(x, mode="economic"), W, 1, "col")), TALL, nested=False)
    agrees(lambda x: linalg.qr_insert(*linalg.qr(x), V, 1)[1], A, nested=False)


def test_they_are_the_factors_of_the_changed_matrix():
    def both(f):
        return plaingrad.jacobian(lambda x: (lambda q, r: q @ r)(*f(x)))(A)

    assert np.allclose(both(lambda x: linalg.qr_update(*linalg.qr(x), V, V)), np.eye(16).reshape(4, 4, 4, 4))


def test_the_first_call_wakes_the_rule():
    q, r = linalg.qr(A)
    assert plaingrad.grad(lambda v: linalg.qr_update(q, r, v, V)[1].sum())(V).shape == V.shape


def test_the_derivative_warns_of_nothing_that_the_call_does_not():
    """SciPy 1.18 warns of `lwork`; warnings are errors here."""
    for f in (linalg.qr, linalg.rq, linalg.schur):
        assert np.isfinite(plaingrad.grad(lambda x, f=f: np.trace(f(x + x.T)[0] @ f(x + x.T)[1]))(A)).all()


def test_what_is_given_by_name_counts():
    q, r = linalg.qr(A)
    by_name = plaingrad.grad(lambda v: whole(linalg.qr_update(q, r, u=v, v=V))[:7].sum())(V)
    np.testing.assert_allclose(by_name, plaingrad.grad(lambda v: whole(linalg.qr_update(q, r, v, V))[:7].sum())(V))
    assert by_name.any()
