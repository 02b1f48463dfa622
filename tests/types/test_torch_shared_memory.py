"""One memory, two names: arrays of NumPy and tensors of PyTorch that were made of each other before a derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plaingrad
from plaingrad import AliasError, ChangedSinceError, MissingRuleError

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # parts of PyTorch, when first used
    pytest.mark.filterwarnings("ignore:.*[Ss]parse"),
    pytest.mark.filterwarnings("ignore:.*trac"),
]
X = np.array([0.3, 0.7])
REFUSED = (AliasError, ChangedSinceError, MissingRuleError)
PROGRAMS: list[Any] = []
REFUSALS: list[Any] = []


def right(program: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS.append(pytest.param(program, id=program.__name__))
    return program


def refused(program: Callable[..., Any]) -> Callable[..., Any]:
    REFUSALS.append(pytest.param(program, id=program.__name__))
    return program


def pair(*numbers: float) -> tuple[np.ndarray, Any]:
    """An array, and the tensor that lies in it."""
    a = np.array(numbers or (1.0, 2.0))
    return a, torch.from_numpy(a)


# -- the array is written, the tensor is read: `a` and `t` were made outside -----------------------------------------


@right
def sum_of_the_tensor(x, a, t):
    a[:] = x * x
    return float((t * 3).sum())


@right
def one_element(x, a, t):
    a[1] = x[0]
    return t[1].item() * t[0].item() + x[1]


@right
def a_view_of_the_tensor(x, a, t):
    v = t[1:]
    a[:] = x * x
    return float((v * 3).sum())


@right
def a_list_of_the_tensor(x, a, t):
    a[:] = x * x
    return sum(t.tolist())


@right
def numpy_of_the_tensor_is_the_array(x, a, t):
    a[:] = x
    b = t.numpy()
    b[0] = x[1] * 2
    return (a * a).sum() + float(t.sum())


@right
def copies_by_numpy(x, a, t):
    a[:] = x * x
    return np.array(t).sum() * np.asarray(t)[0]


@right
def float_of_an_element(x, a, t):
    a[:] = x * x
    return float(t[0]) * float(t[1])


@right
def functions_of_math(x, a, t):
    import math

    a[:] = x * x
    return math.sin(t[0]) + math.sin(t[1])


@right
def the_array_is_written_twice(x, a, t):
    a[:] = x
    s = float((t * t).sum())
    a[:] = 3 * x
    return s + float((t * t * t).sum())


@right
def an_element_at_a_time(x, a, t):
    s = 0.0
    a[:] = 0
    for k in range(2):
        a[k] = x[k] * (k + 1) + x[0]
        s += float(torch.sin(t).sum())
    return s


@right
def stacked(x, a, t):
    a[:] = x**2
    return torch.stack([t, t * 2]).sum().item()


@right
def iterated(x, a, t):
    a[:] = x**2
    return float(sum(v * v for v in t))


@right
def constants_are_what_they_were_when_used(x, a, t):
    a[:] = [3.0, 4.0]
    s = float((t * torch.from_numpy(x)).sum())
    a[:] = [5.0, 6.0]
    return s


@right
def made_inside_and_written_afterwards(x, a, t):
    b = x * 1.0
    u = torch.from_numpy(b)
    v = u[0]
    b[:] = x * x
    return float(u.sum() + v)


@right
def zeros_made_inside(x, a, t):
    b = np.zeros(2)
    u = torch.as_tensor(b)
    b[:] = x * x
    return float((u * 3).sum())


@right
def columns_and_transposes(x, a, t):
    m = np.asfortranarray(np.ones((2, 3)))
    u = torch.from_numpy(m).T[1]
    m[:, 1] = x * x
    return float((u * torch.tensor([2.0, 3.0], dtype=torch.float64)).sum())


@right
def without_a_gradient(x, a, t):
    a[:] = x * x
    with torch.no_grad():
        return float((t * 3).sum())


@right
def a_module(x, a, t):
    layer = torch.nn.Linear(2, 1, bias=False).double()
    layer.weight = torch.nn.Parameter(t[None], requires_grad=False)
    a[:] = x**2
    return layer(torch.ones(2, dtype=torch.float64)).item()


@right
def by_dlpack(x, a, t):
    u = torch.from_dlpack(a)
    a[:] = x * x
    return float((u * 3).sum())


@right
def functions_of_python_that_iterate(x, a, t):
    import math

    a[:] = x * x
    last = list(reversed(t))[0]
    return float(sum(t)) * float(math.prod(t)) + float(last) + float(list(t)[1] * max(t))


@right
def a_loader_of_data(x, a, t):
    data = torch.utils.data.TensorDataset(t, t)
    a[:] = x * x
    return sum(float((u * v).sum()) for u, v in torch.utils.data.DataLoader(data, batch_size=1))


@right
def a_distribution_made_before(x, a, t):
    normal = torch.distributions.Normal(t, 1.0)
    a[:] = x * x
    return float(normal.log_prob(torch.tensor(0.5, dtype=torch.float64)).sum() + normal.mean.sum())


@pytest.mark.parametrize("program", PROGRAMS)
def test_reverse_and_forward_mode_agree_with_differences(program):
    def f(x):
        return program(x, *names)

    names, h = pair(), 1e-6
    slopes = plaingrad.grad(f)(X.copy())
    along = plaingrad.jvp(f, (X.copy(),), (np.array([1.0, -2.0]),))[1]
    steps = np.eye(2) * h
    by_differences = np.array([(f(X + step) - f(X - step)) / (2 * h) for step in steps])
    np.testing.assert_allclose(slopes, by_differences, atol=1e-7)
    np.testing.assert_allclose(along, by_differences @ [1.0, -2.0], atol=1e-7)
    assert plaingrad.value_and_grad(f)(X.copy())[0] == f(X.copy())


def test_second_derivatives():
    a, t = pair()

    def f(x):
        a[:] = x * x
        return float((t * t * x[0]).sum())

    found = plaingrad.hessian(f)(X.copy())
    p, q = X
    np.testing.assert_allclose(found, [[20 * p**3, 4 * q**3], [4 * q**3, 12 * p * q**2]])


def test_a_tensor_as_argument():
    def f(x):
        a = np.zeros(3)
        t = torch.from_numpy(a)[1:]
        a[:] = x.numpy()
        return (t * t).sum()

    slope = plaingrad.grad(f)(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    assert slope.tolist() == [0.0, 4.0, 6.0]


# -- what is not followed ----------------------------------------------------------------------------------------------


@refused
def the_tensor_is_written(x, a, t):
    t.copy_(torch.from_numpy(x * x))
    return a.sum()


@refused
def an_active_array_is_written_by_the_tensor(x, a, t):
    a[:] = x
    t.mul_(2)
    return (a * x).sum()


@refused
def a_constant_that_was_used_is_written_by_the_tensor(x, a, t):
    s = (a * x).sum()
    t.add_(1)
    return s


@refused
def an_array_over_memory_of_pytorch(x, a, t):
    u = torch.zeros(2, dtype=torch.float64)
    u.numpy()[:] = x
    return float(u.sum())


@refused
def dlpack_of_a_tensor_that_is_written(x, a, t):
    u = torch.zeros(2, dtype=torch.float64)
    b = np.from_dlpack(u)
    u[:] = torch.from_numpy(x)
    return b.sum()


@refused
def a_parameter_that_requires_a_gradient(x, a, t):
    layer = torch.nn.Linear(2, 1).double()
    layer.weight = torch.nn.Parameter(t[None])
    a[:] = x
    return float(layer(torch.ones(2, dtype=torch.float64)).detach())


@refused
def a_part_of_a_constant(x, a, t):
    u, _ = torch.broadcast_tensors(t, torch.from_numpy(x))
    return float(u.sum())


@refused
def a_list_of_elements(x, a, t):
    a[:] = x
    return np.array([t[0], t[1]]).sum()


@refused
def a_constant_of_torchscript(x, a, t):
    traced = torch.jit.trace(lambda v: v * t, (torch.ones(2, dtype=torch.float64),))
    a[:] = x
    return float(traced(torch.ones(2, dtype=torch.float64)).sum())


@refused
def a_constant_of_torchscript_beside_an_active_argument(x, a, t):
    traced = torch.jit.trace(lambda v: v * t, (torch.ones(2, dtype=torch.float64),))
    a[:] = x
    return float(traced(torch.from_numpy(x)).sum())


@refused
def a_constant_of_torchscript_that_is_written_afterwards(x, a, t):
    traced = torch.jit.trace(lambda v: v * t, (torch.ones(2, dtype=torch.float64),))
    y = traced(torch.from_numpy(x))
    a[:] = 5.0
    return float(y.sum())


@refused
def a_constant_of_torchscript_that_pytorch_writes(x, a, t):
    u = torch.ones(2, dtype=torch.float64)
    traced = torch.jit.trace(lambda v: v * u, (torch.ones(2, dtype=torch.float64),))
    u.copy_(torch.from_numpy(x))
    return float(traced(torch.ones(2, dtype=torch.float64)).sum())


class Scaling(torch.nn.Module):
    """Has a tensor as attribute, and another as buffer."""

    def __init__(self, t):
        super().__init__()
        self.w = t
        self.register_buffer("b", t)

    def forward(self, v):
        return (v * self.w * self.b).sum()


@refused
def an_attribute_of_a_scripted_module(x, a, t):
    module = torch.jit.script(Scaling(t))
    a[:] = x
    return float(module(torch.ones(2, dtype=torch.float64)))


@refused
def an_attribute_of_a_scripted_module_that_is_written_afterwards(x, a, t):
    y = torch.jit.script(Scaling(t))(torch.from_numpy(x))
    a[:] = 3.0
    return float(y)


@refused
def a_buffer_of_a_traced_module(x, a, t):
    module = torch.jit.trace(Scaling(t), (torch.ones(2, dtype=torch.float64),))
    a[:] = x
    return float(module(torch.ones(2, dtype=torch.float64)))


@refused
def what_a_function_of_autograd_has_captured(x, a, t):
    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            return v * t

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar * t

    y = Times.apply(torch.from_numpy(x))
    a[:] = 7.0
    return float(y.sum())


@refused
def exact_sum(x, a, t):
    import math

    a[:] = x
    return math.fsum(t)


@refused
def entries_of_sparse_tensors(x, a, t):
    s = torch.sparse_coo_tensor([[0, 1]], t, (2,))
    a[:] = x
    return float(s.to_dense().sum())


@refused
def a_tensor_times_an_array(x, a, t):
    return float((torch.from_numpy(x) * a).sum())


@pytest.mark.parametrize("program", REFUSALS)
def test_is_refused_not_wrong(program):
    names = pair()
    with pytest.raises(REFUSED):
        plaingrad.grad(lambda x: program(x, *names))(X.copy())


@pytest.mark.parametrize("constant", [True, False])
def test_a_differentiated_tensor_in_memory_that_numpy_writes(constant):
    a, t = pair(0.3, 0.7)

    def f(u):
        a[0] = 5.0 if constant else (u * u).sum().item()
        return (u * u).sum()

    with pytest.raises(MissingRuleError):
        plaingrad.grad(f)(t)
