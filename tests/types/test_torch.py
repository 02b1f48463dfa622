"""Tensors of PyTorch in plain functions, its modules and functions as steps, and plain functions inside PyTorch."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plaingrad
from plaingrad import MissingRuleError

torch = pytest.importorskip("torch")
importlib.import_module("plaingrad.torch")
F = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # parts of PyTorch, when first used
X = torch.tensor([1.0, 2.5, 3.0], dtype=torch.float64)
W = torch.tensor([[0.3, -0.2, 0.5], [0.1, 0.7, -0.4], [0.2, 0.2, 0.9]], dtype=torch.float64)


class Net(torch.nn.Module):
    """A module of the program: its own `forward` is followed."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 4).double(), torch.nn.Linear(4, 1).double()
        self.norm = torch.nn.LayerNorm(4).double()

    def forward(self, x: Any) -> Any:
        return self.second(self.norm(torch.tanh(self.first(x))))


torch.manual_seed(0)
NET = Net()
STACK = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1)).double()


class Cube(torch.autograd.Function):
    """A function with a derivative of its own, twice differentiable."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, y_bar: Any) -> Any:
        return 3 * ctx.saved_tensors[0] ** 2 * y_bar


def unpacked(x: Any) -> Any:
    a, b, c = x
    return a * b + c


def dropped(x: Any) -> Any:
    torch.manual_seed(1)
    return F.dropout(x * x, 0.5).sum() * x[0]


#: Programs that PyTorch's own autograd differentiates as they are.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "operators": lambda x: (2.0**x + x**3 - 1 / x + abs(-x) + (x * x)).sum(),
    "functions": lambda x: torch.sin(x).sum() + torch.sum(input=x * x, dim=0),
    "methods": lambda x: x.exp().mean() * x.shape[0],
    "items": lambda x: x[0] * x[1] + x[1:].prod() + x[x > 2].sum() ** 2,
    "matrix product": lambda x: (x[:, None] @ x[None, :]).sum() + x @ W @ x,
    "iteration": lambda x: sum(v * v for v in x),
    "unpacking": unpacked,
    "joined": lambda x: torch.cat([x, torch.stack([x[0] * x[1], x[2]])]).logsumexp(0),
    "several results": lambda x: torch.max(x * x, dim=0).values + x.max() + x.argmax(),
    "where": lambda x: torch.where(x > 1.5, x * x, -x).sum() + x.clamp(1.5, 2.6).sum(),
    "views": lambda x: x.reshape(3, 1).T.expand(2, 3).sum(dim=1)[0] * x.numel(),
    "einsum": lambda x: torch.einsum("i,ij,j->", x, W, x),
    "linear algebra": lambda x: torch.linalg.det(torch.outer(x, x) + torch.diag(x)),
    "complex": lambda x: torch.complex(x, x * x).abs().sum() + (torch.fft.fft(x).abs() ** 2).sum(),
    "loss": lambda x: F.cross_entropy(x[None, :], torch.tensor([1])),
    "convolution": lambda x: F.conv1d(x[None, None, :], W[None, :1, :2]).pow(2).sum(),
    "modules": lambda x: STACK(x).sum(),
    "a module of the program": lambda x: NET(x).sum(),
    "a module of the program inside": lambda x: torch.nn.Sequential(NET, torch.nn.Sigmoid())(x).sum(),
    "custom function": lambda x: Cube.apply(x).sum(),
    "random": dropped,
    "functional": lambda x: torch.func.vmap(lambda a: a * a)(x).sum() * x[0],
    "branch": lambda x: x[0] * x[2] if x[0] < x[1] else x.sum(),
}


def reference(f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any]:
    """The gradient, and the Hessian times v, by PyTorch."""
    x = x.detach().clone().requires_grad_()
    (d,) = torch.autograd.grad(f(x), x, create_graph=True)
    if not d.requires_grad:
        return d, torch.zeros_like(d)
    (h,) = torch.autograd.grad((d * v).sum(), x, allow_unused=True)
    return d.detach(), torch.zeros_like(d) if h is None else h


def same(a: Any, b: Any, accuracy: float = 1e-12) -> bool:
    return bool(a.dtype == b.dtype and torch.allclose(a, b, rtol=accuracy, atol=accuracy))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_over_tensors_have_pytorchs_derivatives(name: str) -> None:
    f, v = PROGRAMS[name], torch.tensor([0.3, -0.2, 0.7], dtype=torch.float64)
    d, h = reference(f, X, v)
    assert same(plaingrad.grad(f)(X), d)
    y, y_dot = plaingrad.jvp(f, (X,), (v,))
    assert same(y_dot, (d * v).sum(), 1e-11)
    assert y == f(X)
    assert not y.requires_grad or "module" in name  # parameters require a gradient, as in a plain call
    assert same(plaingrad.hvp(f, (X,), (v,))[0], h, 1e-10)


def filled(x: Any) -> Any:
    out = torch.zeros(3, dtype=x.dtype)
    out[0] = x[0]
    for i in range(1, 3):
        out[i] = out[i - 1] * x[i] + torch.sin(out[i - 1])
    return out.sum()


def filled_without_writing(x: Any) -> Any:
    out = [x[0]]
    for i in range(1, 3):
        out.append(out[-1] * x[i] + torch.sin(out[-1]))
    return torch.stack(out).sum()


def through_views(x: Any) -> Any:
    y = x * 1.5
    v = y[1:]
    w = v * v
    v += x[0]
    v[0] *= y[0]
    y.view(3, 1)[2, 0] = x[1] ** 2
    return (y * w.sum()).sum() + v.sum()


def through_no_views(x: Any) -> Any:
    y = x * 1.5
    w = y[1:] ** 2
    y = torch.stack([y[0], (y[1] + x[0]) * y[0], x[1] ** 2])
    return (y * w.sum()).sum() + y[1:].sum()


def view_made_before(x: Any) -> Any:
    b = torch.zeros(3, dtype=x.dtype)
    v = b[1:]
    b[1] = x[0] * x[0]
    v[1] = x[1]
    return (v * v).sum() + b.prod() + b[1]


WRITING = {
    "filled": (filled, filled_without_writing),
    "views": (through_views, through_no_views),
    "a view made before": (view_made_before, lambda x: x[0] ** 4 + x[1] ** 2 + x[0] ** 2),
}


@pytest.mark.parametrize("name", WRITING)
def test_tensors_may_be_written_and_views_of_them_follow(name: str) -> None:
    f, without = WRITING[name]
    v = torch.tensor([0.3, -0.2, 0.7], dtype=torch.float64)
    d, h = reference(without, X, v)
    assert same(plaingrad.grad(f)(X), d)
    assert same(plaingrad.jvp(f, (X,), (v,))[1], (d * v).sum())
    assert same(plaingrad.hvp(f, (X,), (v,))[0], h, 1e-11)


def test_what_a_function_writes_into_its_argument_the_caller_sees() -> None:
    def f(x: Any) -> Any:
        x += x * x
        x[0] = x[1]
        return x.sum()

    x, plain = X.clone(), X.clone()
    f(plain)
    assert same(plaingrad.grad(f)(x), torch.tensor([0.0, 12.0, 7.0], dtype=torch.float64))
    assert same(x, plain)


def test_precision_and_structure_are_the_arguments() -> None:
    d = plaingrad.grad(lambda d: (d["w"] * d["b"]).sum())({"w": X.float(), "b": X.float() * 2})
    assert d["w"].dtype == torch.float32
    assert same(d["b"], X.float())
    d = plaingrad.grad(lambda m: (m(X) ** 2).sum())(STACK[0])
    expected = torch.autograd.grad((STACK[0](X) ** 2).sum(), STACK[0].weight)[0]
    assert same(d._parameters["weight"], expected)
    z = torch.tensor([1 + 2j])
    assert torch.equal(plaingrad.grad(lambda x: (x * x.conj()).real.sum())(z), 2 * z)


def test_numbers_and_arrays_go_into_tensors_and_come_out() -> None:
    def norm(v: Any) -> float:
        return torch.sin(torch.from_numpy(v)).pow(2).sum().item()

    v = np.array([0.3, 0.4])
    np.testing.assert_allclose(plaingrad.grad(norm)(v), np.sin(2 * v), rtol=1e-12)
    np.testing.assert_allclose(plaingrad.hessian(norm)(v), np.diag(2 * np.cos(2 * v)), rtol=1e-12)
    np.testing.assert_allclose(plaingrad.jvp(norm, (v,), (v,))[1], np.sin(2 * v) @ v, rtol=1e-12)
    assert (
        plaingrad.grad(lambda a: (torch.tensor([a, 2.0], dtype=torch.float64) * a).sum().item())(3.0) == 8.0
    )
    assert plaingrad.grad(lambda a: (torch.ones(2) * a).sum().item())(2.0) == 2.0
    jacobian = plaingrad.jacobian(lambda v: torch.sin(torch.from_numpy(v)).numpy())(v)
    np.testing.assert_allclose(jacobian, np.diag(np.cos(v)), rtol=1e-12)
    d = plaingrad.grad(lambda x: torch.tensor(math.sin(x[0].item()), dtype=x.dtype) * float(x[1]))(X)
    assert same(d, torch.tensor([math.cos(1) * 2.5, math.sin(1), 0], dtype=torch.float64))


def test_a_module_evaluated_for_numpy_has_derivatives_detached_or_not() -> None:
    def f(v: Any) -> Any:
        with torch.no_grad():
            return float((STACK(torch.from_numpy(v)).numpy() * v[:1]).sum())

    def g(v: Any) -> Any:
        return float((STACK(torch.from_numpy(v)).detach().cpu().numpy() * v[:1]).sum())

    v = np.array([0.3, 0.4, 0.5])
    plaingrad.testing.check_grads(f, (v,))
    np.testing.assert_allclose(plaingrad.grad(g)(v), plaingrad.grad(f)(v), rtol=1e-12)
    np.testing.assert_allclose(plaingrad.hessian(g)(v), plaingrad.hessian(f)(v), rtol=1e-12)


def test_builtins_go_through_tensors() -> None:
    for f in (
        lambda x: list(reversed(x))[0],
        lambda x: list(x)[2],
        lambda x: max(x),
        lambda x: sorted(x)[2],
        lambda x: [*zip(x, x, strict=True)][2][1],
        lambda x: x.tolist()[2],
        lambda x: functools.reduce(lambda a, b: b, x),
    ):
        assert plaingrad.grad(f)(X).tolist() == [0.0, 0.0, 1.0]


def test_derivatives_nest_and_three_orders_hold() -> None:
    def cubed(x: Any) -> Any:
        return plaingrad.grad(lambda y: (y**4).sum())(x).sum()

    d = plaingrad.grad(lambda x: plaingrad.grad(cubed)(x).sum())(X)
    assert same(d, 24 * X)


def captured(x: Any) -> Any:
    return torch.func.vmap(lambda a: a * x)(torch.ones(2)).sum()


def lent(x: Any) -> Any:
    y = x * 2
    a = y.numpy()
    a[0] = 5.0
    return y.sum()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x.detach() * x).sum(),
        lambda x: (x.data * 2).sum(),
        lambda x: (x * x).sum().backward(),
        lambda x: np.sin(x).sum(),
        lambda x: np.stack([x, x]).sum(),
        lambda x: np.from_dlpack(x).sum(),
        lambda x: torch.tensor([x[0], x[1]]).sum(),
        lambda x: torch.nn.Parameter(x).sum(),
        lambda x: torch.full((2,), x[0].item()).sum(),
        lambda x: F.leaky_relu(x, x[0].item()).sum(),
        lambda x: torch.mul(x, x, out=torch.empty(3, dtype=x.dtype)).sum(),
        lambda x: (x // 2).sum(),
        captured,
        lent,
    ],
)
def test_what_is_not_sure_is_refused(f: Callable[[Any], Any]) -> None:
    with pytest.raises(MissingRuleError):
        plaingrad.grad(f)(X.clone())


def test_tensors_without_numbers_and_jacobians_of_tensors_are_refused() -> None:
    with pytest.raises(plaingrad.ArgumentError):
        plaingrad.grad(lambda x: x.sum())(torch.arange(3))
    for operator in (plaingrad.jacobian, plaingrad.hessian):
        with pytest.raises(plaingrad.ArgumentError, match="NumPy"):
            operator(lambda x: (x * x).sum())(X)
    with pytest.raises(plaingrad.ArgumentError):
        plaingrad.sparsity(lambda x: x * x, X)
    with pytest.raises(plaingrad.ArgumentError):
        plaingrad.linearize(lambda x: (x * x).sum(), X)


def weighted(v: Any, a: float, k: int = 2) -> float:
    """A plain program of numbers and arrays."""
    s = 0.0
    for e in v:
        s += math.sin(e) * a**k
    return s


def test_a_plain_function_is_one_of_tensors_for_pytorch_to_two_orders() -> None:
    f = plaingrad.torch.function(weighted)
    v = torch.tensor([0.3, 0.4], dtype=torch.float64, requires_grad=True)
    a = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    expected = torch.sin(v).sum() * a**3
    y = f(v, a, k=3)
    assert y.item() == pytest.approx(expected.item(), rel=1e-14)
    found, true = (torch.autograd.grad(z, (v, a), create_graph=True) for z in (y, expected))
    assert all(same(d, t) for d, t in zip(found, true, strict=True))
    second, again = (torch.autograd.grad(d[0].sum() + d[1], (v, a)) for d in (found, true))
    assert all(same(d, t) for d, t in zip(second, again, strict=True))
    _, dot = torch.func.jvp(lambda v: f(v, 1.0), (v.detach(),), (torch.ones_like(v),))
    assert same(dot, torch.cos(v.detach()).sum())


def test_several_results_precision_and_what_vmap_gets() -> None:
    f = plaingrad.torch.function(lambda v: (np.cumsum(v) * v, np.argmax(v)))
    v = torch.tensor([1.0, 2.0], requires_grad=True)
    y, at = f(v)
    y.sum().backward()
    assert (y.dtype, v.grad.dtype, at.item()) == (torch.float32, torch.float32, 1)
    assert v.grad.tolist() == [4.0, 5.0]
    with pytest.raises(plaingrad.ArgumentError, match="vmap"):
        torch.func.vmap(plaingrad.torch.function(weighted), (0, None))(torch.ones(2, 2), 1.0)
    with pytest.raises(plaingrad.ArgumentError, match="inside a list"):
        f([v])


def test_a_function_of_pytorch_is_one_step_where_that_is_said() -> None:
    f = plaingrad.torch.inside(lambda x: (x * x.detach()).sum())
    assert same(plaingrad.grad(f)(X), X)


def test_a_plain_function_inside_pytorch_inside_a_plain_function() -> None:
    f = plaingrad.torch.function(weighted)
    d = plaingrad.grad(lambda v: f(torch.from_numpy(v), 2.0).item())(np.array([0.3, 0.4]))
    np.testing.assert_allclose(d, 4 * np.cos([0.3, 0.4]), rtol=1e-12)
