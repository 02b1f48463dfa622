"""Cotangents of windows of an array, which share elements: every term counts, whatever the windows are like."""

import numpy as np
import pytest

import plaingrad
from plaingrad.engine.memory.memory import add_into

windows_of = np.lib.stride_tricks.sliding_window_view
X = np.random.default_rng(3).normal(size=(60, 7))
VIEWS = {
    "half over each other": lambda x: windows_of(x[:, 0], 8)[::4],
    "one step apart": lambda x: windows_of(x[:, 0], 8),
    "wide, one step apart": lambda x: windows_of(x[:, 0], 50),
    "backwards": lambda x: windows_of(x[:, 0], 8)[::-3, ::-1],
    "of rows": lambda x: windows_of(x, 5, axis=0)[::2],
    "of squares": lambda x: windows_of(x, (5, 3))[::2, ::2],
    "repeated": lambda x: np.broadcast_to(x[:, 0], (4, 60)),
    "apart": lambda x: windows_of(x[:, 0], 4)[::4],
    "windows of windows": lambda x: windows_of(windows_of(x[:, 0], 9), (3, 4)),
    "one": lambda x: windows_of(x[:, 0], 60),
}


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_every_term_counts(name):
    places = VIEWS[name](np.arange(X.size).reshape(X.shape))
    x_bar = np.random.default_rng(4).normal(size=places.shape)
    target = np.ones(X.shape)
    view = VIEWS[name](target)
    offset = view.ctypes.data - target.ctypes.data
    add_into(np.ndarray(view.shape, float, target, offset, view.strides), x_bar)
    expected = 1.0 + np.bincount(places.ravel(), x_bar.ravel(), X.size).reshape(X.shape)
    np.testing.assert_allclose(target, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_gradients_and_second_derivatives_through_windows(name):
    places = VIEWS[name](np.arange(X.size).reshape(X.shape))
    counts = np.bincount(places.ravel(), minlength=X.size).reshape(X.shape)
    f = lambda x: np.sum(VIEWS[name](x) ** 3)
    np.testing.assert_allclose(plaingrad.grad(f)(X), 3 * counts * X**2, rtol=1e-12)
    twice = plaingrad.grad(lambda x: np.sum(plaingrad.grad(f)(x)))
    np.testing.assert_allclose(twice(X), 6 * counts * X, rtol=1e-12)
