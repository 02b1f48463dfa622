"""Functions of the array API over NumPy and PyTorch: right in value and derivative, to second order, or refused."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from tests.types.array_api import FUNCTIONS, V, X, program, slope

from plaingrad import MissingRuleError, grad, jvp

#: What PyTorch gives no derivative of; of `sign` in reverse mode, as array-api-compat computes it.
NOT_OF_TORCH = {"floor_divide", "operators", "unique_values"}
NOT_OF_TORCH_BACK = {*NOT_OF_TORCH, "sign"}


def check(xp, name, made, back):
    """The derivatives of one function at X along V, forward, in reverse and forward over reverse."""
    f = program(xp, FUNCTIONS[name])
    v = made(V)
    value, forward = jvp(f, (made(X),), (v,))
    assert float(value) == float(f(made(X))), name
    np.testing.assert_allclose(float(forward), slope(lambda a: float(f(made(a))), V), rtol=1e-7, atol=1e-9, err_msg=name)
    back_along = lambda a: float((back(grad(f)(made(a))) * V).sum())
    np.testing.assert_allclose(back_along(X), float(forward), rtol=1e-10, atol=1e-12, err_msg=name)
    second = float((back(jvp(grad(f), (made(X),), (v,))[1]) * V).sum())
    h = 1e-4
    differences = (back_along(X + h * V) - back_along(X - h * V)) / (2 * h)
    np.testing.assert_allclose(second, differences, rtol=1e-5, atol=1e-6, err_msg=name)


def test_every_function_of_the_array_api_over_numpy():
    if not hasattr(np, "vecdot"):
        pytest.skip("this NumPy is older than the array API")
    for name in FUNCTIONS:
        if name.split()[0] not in ("cumulative_sum", "cumulative_prod", "unstack") or hasattr(np, "cumulative_sum"):
            check(np, name, np.copy, np.asarray)


def test_every_function_of_the_array_api_over_pytorch():
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    xp = import_module("array_api_compat.torch")
    torch.set_default_dtype(torch.float64)
    try:
        for name in FUNCTIONS:
            if name not in NOT_OF_TORCH_BACK:
                check(xp, name, torch.tensor, lambda x: x.detach().numpy())
                continue
            f = program(xp, FUNCTIONS[name])
            with pytest.raises(MissingRuleError):
                grad(f)(torch.tensor(X))
            if name in NOT_OF_TORCH:
                with pytest.raises(MissingRuleError):
                    jvp(f, (torch.tensor(X),), (torch.tensor(V),))
    finally:
        torch.set_default_dtype(torch.float32)
