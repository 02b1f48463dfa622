"""einops: reshapes, reductions and sums told by strings, behind a cache of recipes."""

import numpy as np
import pytest

import plaingrad

einops = pytest.importorskip("einops")


def test_a_rearrangement_there_and_back():
    x = np.arange(24.0).reshape(2, 3, 4)
    weights = np.random.default_rng(0).normal(size=(4, 6))

    def f(x):
        return (einops.rearrange(x, "a b c -> c (a b)") * weights).sum()

    expected = einops.rearrange(weights, "c (a b) -> a b c", a=2)
    np.testing.assert_array_equal(plaingrad.grad(f)(x), expected)


def test_pooling_and_repeating(agrees):
    def f(x):
        pooled = einops.reduce(x, "(h a) (w b) -> h w", "mean", a=2, b=2)
        return (einops.repeat(pooled, "h w -> h w c", c=3) ** 2).sum() + einops.reduce(x, "h w -> ", "max")

    agrees(f, np.random.default_rng(1).normal(size=(4, 4)))


def test_attention(agrees):
    random = np.random.default_rng(2)

    def attention(x, wq, wk, wv):
        q, k, v = (einops.rearrange(x @ w, "t (h d) -> h t d", h=2) for w in (wq, wk, wv))
        scores = einops.einsum(q, k, "h i d, h j d -> h i j") / 2**0.5
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / einops.reduce(weights, "h i j -> h i 1", "sum")
        mixed = einops.rearrange(einops.einsum(weights, v, "h i j, h j d -> h i d"), "h t d -> t (h d)")
        return np.tanh(mixed).sum()

    agrees(attention, random.normal(size=(3, 4)), *random.normal(size=(3, 4, 4)))
