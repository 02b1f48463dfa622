"""Programs over tensors whose derivatives were silently wrong once, or ended in an error of PyTorch's."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import pytest

import plaingrad
from plaingrad import MissingRuleError

torch = pytest.importorskip("torch")
importlib.import_module("torch.utils.checkpoint")
F = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # parts of PyTorch, when first used
X = torch.tensor([1.0, 2.5, 3.0], dtype=torch.float64)


def reference(f: Callable[[Any], Any], x: Any) -> Any:
    """The gradient by PyTorch."""
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(f(x), x)[0].detach()


def same(a: Any, b: Any, accuracy: float = 1e-12) -> bool:
    return bool(a.dtype == b.dtype and torch.allclose(a, b, rtol=accuracy, atol=accuracy))


def through_a_graph(x: Any) -> Any:
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    return (w * x * x).sum()


def residual(x: Any) -> Any:
    y = SQUARE(x)
    return (SQUARE(y + x) * y * x).sum()


def written_parts_of_complex(x: Any) -> Any:
    z = torch.complex(x, x)
    z.real.mul_(x[0])
    z.imag[1] = x[1] ** 2
    z.conj()[2] = torch.complex(x[0], x[1])
    return (z.real * z.imag * x).sum()


def overwritten_by_activation(x: Any) -> Any:
    y = x * 2 - 3
    torch.nn.ReLU(inplace=True)(y)
    F.leaky_relu(y, 0.1, inplace=True)
    return (y * x).sum()


def container_of_the_programs_modules(x: Any) -> Any:
    class Scaled(torch.nn.Module):
        def forward(self, z: Any) -> Any:
            return z * z * x[0]

    return torch.nn.Sequential(Scaled(), torch.nn.Tanh())(x).sum()


def singular_values(x: Any) -> Any:
    return (torch.linalg.svd(torch.eye(3, dtype=torch.float64) * x[0]).S * x[1]).sum()


def in_inference_mode(x: Any) -> Any:
    with torch.inference_mode():
        y = x * x
        return (y * x).sum()


torch.manual_seed(1)
SQUARE = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh()).double()
ONCE_WRONG = {
    "constant in a graph": through_a_graph,
    "residual": residual,
    "parts of complex numbers": written_parts_of_complex,
    "in-place activations": overwritten_by_activation,
    "module of the program in a container": container_of_the_programs_modules,
    "singular values": singular_values,
    "inference mode": in_inference_mode,
}


@pytest.mark.parametrize("name", ONCE_WRONG)
def test_derivatives_agree_with_differences_and_modes_with_each_other(name: str) -> None:
    f, v, h = ONCE_WRONG[name], torch.tensor([0.3, -0.2, 0.7], dtype=torch.float64), 1e-5
    slope = plaingrad.grad(f)(X)
    for k in range(3):
        step = h * torch.eye(3, dtype=torch.float64)[k]
        assert abs(float(slope[k]) - float((f(X + step) - f(X - step)).detach()) / (2 * h)) < 1e-6
    if name == "singular values":  # their second derivatives have a pole where they are equal
        return
    assert abs(float(plaingrad.jvp(f, (X,), (v,))[1].detach()) - float(slope @ v)) < 1e-9
    expected = (plaingrad.grad(f)(X + h * v) - plaingrad.grad(f)(X - h * v)) / (2 * h)
    assert same(plaingrad.hvp(f, (X,), (v,))[0], expected, 1e-6)


def test_parameters_of_a_residual_module_have_pytorchs_gradients() -> None:
    loss = lambda m: (m(X) * m(m(X)) + X).pow(2).sum()  # noqa: E731
    expected = torch.autograd.grad(loss(SQUARE), list(SQUARE.parameters()))
    found = plaingrad.grad(loss)(SQUARE)._modules["0"]._parameters
    assert same(found["weight"], expected[0]) and same(found["bias"], expected[1])


class Scale:
    """An object with a method that uses what it holds."""

    def __init__(self, by: Any) -> None:
        self.by = by

    def of(self, a: Any) -> Any:
        return a * self.by


def with_method(x: Any) -> Any:
    return torch.utils.checkpoint.checkpoint(Scale(x[0]).of, x, use_reentrant=False).sum()


def with_function_of_a_function(x: Any) -> Any:
    def inner(a: Any) -> Any:
        return a * x[0]

    return torch.func.vmap(lambda a: inner(a))(x).sum()


def with_default(x: Any) -> Any:
    def scaled(a: Any, by: Any = x[0]) -> Any:
        return a * by

    return torch.func.vmap(scaled)(x).sum()


def with_partial(x: Any) -> Any:
    return torch.func.vmap(functools.partial(torch.mul, x[0]))(x).sum()


HELD: list[Any] = []


def from_global(a: Any) -> Any:
    return a * HELD[-1]


def with_global(x: Any) -> Any:
    HELD.append(x[0] * 1)
    try:
        return torch.func.vmap(from_global)(x).sum()
    finally:
        HELD.clear()


def with_custom_function(x: Any) -> Any:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * x[0]

        @staticmethod
        def backward(ctx: Any, a_bar: Any) -> Any:
            return a_bar * x[0]

    return Scaled.apply(x).sum()


def with_attribute_of_a_module(x: Any) -> Any:
    linear = torch.nn.Linear(3, 1, bias=False).double()
    del linear.weight
    linear.weight = x[None] * 2
    return linear(torch.ones(1, 3, dtype=torch.float64)).sum()


def with_buffer(x: Any) -> Any:
    module = torch.nn.Tanh()
    module.register_buffer("held", x)
    return module.held.sum()


def with_loaded_state(x: Any) -> Any:
    linear = torch.nn.Linear(3, 1, bias=False).double()
    linear.load_state_dict({"weight": x[None]})
    return linear(torch.ones(1, 3, dtype=torch.float64)).sum()


def with_parameters_of_a_vector(x: Any) -> Any:
    linear = torch.nn.Linear(3, 1, bias=False).double()
    torch.nn.utils.vector_to_parameters(x, linear.parameters())
    return linear(torch.ones(1, 3, dtype=torch.float64)).sum()


def with_statistics(x: Any) -> Any:
    norm = torch.nn.BatchNorm1d(3).double()
    norm(torch.stack([x, x * x]))
    return norm.eval()(x[None]).sum()


def with_bits(x: Any) -> Any:
    y = x * 1.0
    y.view(torch.int64)[0] = 0
    return (y * y).sum()


def with_noise(x: Any) -> Any:
    torch.manual_seed(0)
    return torch.normal(x, torch.ones_like(x)).sum()


UNSEEN = [
    with_method,
    with_function_of_a_function,
    with_default,
    with_partial,
    with_global,
    with_custom_function,
    with_attribute_of_a_module,
    with_buffer,
    with_loaded_state,
    with_parameters_of_a_vector,
    with_statistics,
    with_bits,
    with_noise,
]


@pytest.mark.parametrize("f", UNSEEN)
def test_what_pytorch_would_take_for_a_constant_is_refused_in_both_modes(f: Callable[[Any], Any]) -> None:
    with pytest.raises(MissingRuleError):
        plaingrad.grad(f)(X)
    with pytest.raises(MissingRuleError):
        plaingrad.jvp(f, (X,), (X,))


def test_sparse_tensors_have_first_derivatives_by_reverse_mode_only() -> None:
    f = lambda x: torch.sparse.mm((x[:, None] * x[None]).to_sparse(), x[:, None]).sum()  # noqa: E731
    assert same(plaingrad.grad(f)(X), reference(f, X))
    with pytest.raises(MissingRuleError):
        plaingrad.jvp(f, (X,), (X,))


def test_statistics_of_a_module_in_training_do_not_hinder_its_gradient() -> None:
    norm = torch.nn.BatchNorm1d(3).double()
    f = lambda x: (norm(torch.stack([x, x * x])) ** 3 * x).sum()  # noqa: E731
    assert same(plaingrad.grad(f)(X), reference(f, X))
    norm.eval()
    assert same(plaingrad.grad(f)(X), reference(f, X))  # what an earlier derivative wrote is a constant now
