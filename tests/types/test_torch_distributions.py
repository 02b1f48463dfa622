"""Distributions and data loaders of PyTorch, which are Python over tensors: they are followed like a program's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plaingrad

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # parts of PyTorch, when first used
D = torch.distributions
X = torch.tensor([0.3, 0.7], dtype=torch.float64)
AT = torch.tensor([0.2, 0.8], dtype=torch.float64)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "normal": lambda x: D.Normal(x, x.exp()).log_prob(AT).sum(),
    "a distribution kept": lambda x: (lambda d: d.log_prob(AT).sum() * d.entropy().sum())(D.Gamma(x, 1 + x)),
    "several variables": lambda x: D.MultivariateNormal(x, torch.diag(1 + x)).log_prob(AT),
    "divergence": lambda x: D.kl_divergence(D.Normal(x, 1 + x), D.Normal(0 * x, 1.0)).sum(),
    "independent": lambda x: D.Independent(D.Normal(x, 1.0), 1).log_prob(AT),
    "transformed": lambda x: D.LogNormal(x, 1.0).log_prob(AT).sum(),
    "discrete": lambda x: D.Categorical(logits=x).log_prob(torch.tensor(1)),
    "constants beside": lambda x: D.Bernoulli(probs=x).log_prob(torch.tensor([1.0, 0.0], dtype=torch.float64)).sum(),
    "simplex": lambda x: D.Dirichlet(1 + x).log_prob(AT),
    "broadcast": lambda x: sum(z.sum() * (1 + k) for k, z in enumerate(torch.broadcast_tensors(x, AT[:, None]))),
}


def drawn(x: Any) -> Any:
    torch.manual_seed(3)
    return (D.Normal(x, 1 + x).rsample() ** 2).sum()


@pytest.mark.parametrize("f", [*PROGRAMS.values(), drawn], ids=[*PROGRAMS, "drawn"])
def test_gradients_are_those_of_pytorch(f):
    x = X.clone().requires_grad_()
    expected = torch.autograd.grad(f(x), x)[0]
    y, slope = plaingrad.value_and_grad(f)(X.clone())
    assert y == f(X)
    assert torch.allclose(slope, expected, rtol=1e-12, atol=1e-12)
    along = plaingrad.jvp(f, (X.clone(),), (torch.ones(2, dtype=torch.float64),))[1]
    assert torch.allclose(along, expected.sum(), rtol=1e-12, atol=1e-12)


def test_parameters_of_numbers_and_arrays():
    def f(m, v):
        return float(D.Normal(m, 2.0).log_prob(torch.as_tensor(v)).sum())

    slopes = plaingrad.grad(f, argnums=(0, 1))(torch.tensor(0.5, dtype=torch.float64), np.array([1.0, 2.0]))
    np.testing.assert_allclose(slopes[0], 0.5)
    np.testing.assert_allclose(slopes[1], [-0.125, -0.375])


def test_loss_over_batches():
    data = torch.utils.data.TensorDataset(torch.arange(6.0, dtype=torch.float64), torch.ones(6, dtype=torch.float64))

    def f(w):
        loader = torch.utils.data.DataLoader(data, batch_size=4)
        return sum(((w[0] * u + w[1] - v) ** 2).sum() for u, v in loader)

    slope = plaingrad.grad(f)(X.clone())
    u = np.arange(6.0)
    r = 0.3 * u + 0.7 - 1.0
    np.testing.assert_allclose(slope.numpy(), [(2 * r * u).sum(), (2 * r).sum()])
