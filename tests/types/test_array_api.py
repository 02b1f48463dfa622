"""Functions of the array API over NumPy, PyTorch, JAX and Dask: right in value and derivative, to second order, or refused."""

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
    assert float(value) == pytest.approx(float(f(made(X))), rel=1e-15), name
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


@pytest.mark.filterwarnings("ignore:torch.asarray")  # of array-api-compat with newer PyTorch
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


#: A few: JAX compiles every operation by itself, and Dask makes graphs. `python -m tests.types.array_api` tries them all over JAX.
OF_JAX = ("take",)
OF_DASK = ("max", "take", "tril")


def test_functions_of_the_array_api_over_jax():
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        for name in OF_JAX:
            check(jax.numpy, name, jax.numpy.asarray, np.asarray)
        f = program(jax.numpy, FUNCTIONS["unique_values"])  # JAX says 0, since it goes through NumPy
        for refused in (grad(f), lambda x: jvp(f, (x,), (x,))):
            with pytest.raises(MissingRuleError, match="unique_values"):
                refused(jax.numpy.asarray(X))
    finally:
        jax.config.update("jax_enable_x64", before)


def test_functions_of_the_array_api_over_lazy_arrays_of_dask():
    dask = pytest.importorskip("dask")
    pytest.importorskip("array_api_compat")
    xp = import_module("array_api_compat.dask.array")
    with dask.config.set(scheduler="synchronous"):
        for name in OF_DASK:
            lazy = program(xp, FUNCTIONS[name])
            f = lambda x, lazy=lazy: np.asarray(lazy(xp.from_array(x, chunks=(1, 2))))[()]
            forward = jvp(f, (X.copy(),), (V,))[1]
            np.testing.assert_allclose(forward, slope(f, V), rtol=1e-7, atol=1e-9, err_msg=name)
            np.testing.assert_allclose((grad(f)(X.copy()) * V).sum(), forward, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("make", ["arange(3, like=x)", "asarray([x[0], 2.0, 3.0], like=x[:0])", "full(3, x[0], like=x)",
                                  "ascontiguousarray(x, like=x)", "array([1.0, x[1], 3.0], like=x)"])  # fmt: skip
def test_an_array_made_like_a_differentiated_one_depends_on_what_it_is_made_of(make):
    f = eval(f"lambda x: (np.{make} * x * x).sum()", {"np": np})
    x = np.array([1.3, -0.4, 2.0])
    along = jvp(f, (x,), (np.array([0.3, 0.7, -0.2]),))[1]
    step = 1e-20j * np.array([0.3, 0.7, -0.2])
    assert along == pytest.approx(f(x + step).imag * 1e20, rel=1e-13)
    assert grad(f)(x) @ np.array([0.3, 0.7, -0.2]) == pytest.approx(along, rel=1e-13)
