"""Other packages on the same programs: the same source, with their functions in the place of `math` and NumPy's.

autograd brings a NumPy of its own, JAX too; PyTorch has `torch._numpy`, whose arrays of lists are stacked here so
that they keep their gradients. Numbers of lists are tensors of no axis in PyTorch. What a package refuses or gets wrong
is no figure but a line below the table.
"""

import contextlib
import math
import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import plaingrad
from benchmarks.ordinary.check import numbers
from benchmarks.ordinary.program import Program, ported

try:
    import autograd
    import autograd.numpy as autograd_numpy
except ImportError:
    autograd = None
try:
    import torch
    import torch._numpy as torch_numpy
except ImportError:
    torch = None
else:
    torch.set_num_threads(1)
try:
    import jax
except ImportError:
    jax = None
else:
    jax.config.update("jax_enable_x64", True)

LONGEST = 5  # seconds: a peer that takes longer for one gradient, compiling included, has no figure
NAMES = {
    "sin": "sin", "cos": "cos", "tan": "tan", "exp": "exp", "log": "log", "sqrt": "sqrt", "tanh": "tanh",
    "atan2": "arctan2", "degrees": "degrees", "radians": "radians",
}  # fmt: skip


def own_math(functions: Any, is_own: Callable[[Any], bool]) -> SimpleNamespace:
    """`math`, but with a package's functions for the package's numbers."""

    def either(plain: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: theirs(*xs) if any(map(is_own, xs)) else plain(*xs)

    found = SimpleNamespace(**vars(math))
    for name, theirs in NAMES.items():
        setattr(found, name, either(getattr(math, name), getattr(functions, theirs)))
    found.hypot = either(math.hypot, lambda x, y: functions.sqrt(x * x + y * y))
    return found


def by_autograd(p: Program) -> Callable[[], Any]:
    box = autograd.tracer.Box
    maths = own_math(autograd_numpy, lambda x: isinstance(x, box))
    gradient = autograd.grad(ported(p, {math: maths, np: autograd_numpy}, lambda a: a))
    return lambda: gradient(p.x)


def with_lists(module: Any, array: Callable[[Any], Any]) -> Any:
    """A package's NumPy whose functions of several arrays take lists of its numbers, too."""
    found = SimpleNamespace(**{name: getattr(module, name) for name in dir(module) if name[:2] != "__"})
    found.array = array
    found.concatenate = lambda parts, axis=0: module.concatenate([array(part) for part in parts], axis)
    found.stack = lambda parts, axis=0: module.stack([array(part) for part in parts], axis)
    found.diag = lambda x, k=0: module.diag(array(x), k)
    return found


def torch_array(value: Any) -> Any:
    """An array of nested lists whose numbers may have gradients."""
    if isinstance(value, (list, tuple)):
        return torch_numpy.ndarray(torch.stack([torch_array(part).tensor for part in value]))
    if isinstance(value, torch_numpy.ndarray):
        return value
    return torch_numpy.ndarray(torch.as_tensor(value, dtype=torch.float64))


def by_torch(p: Program) -> Callable[[], Any]:
    def tensor(x: Any) -> Any:
        return torch.as_tensor(x, dtype=torch.float64)

    functions = SimpleNamespace(
        **{theirs: getattr(torch, name) for name, theirs in NAMES.items() if hasattr(torch, name)},
        degrees=torch.rad2deg,
        radians=torch.deg2rad,
    )
    functions.arctan2 = lambda y, x: torch.atan2(tensor(y), tensor(x))
    maths = own_math(functions, lambda x: isinstance(x, torch.Tensor))
    own = torch_numpy.ndarray
    f = ported(p, {math: maths, np: with_lists(torch_numpy, torch_array)}, lambda a: own(torch.tensor(a)))

    def gradient() -> Any:
        parts = p.x if isinstance(p.x, list) else [p.x]
        leaves = [torch.tensor(part, dtype=torch.float64, requires_grad=True) for part in parts]
        copies = [leaf.clone() for leaf in leaves]  # PyTorch lets nobody write into a leaf
        if isinstance(p.x, list):
            value = f(copies)
        else:
            value = f(own(copies[0]) if isinstance(p.x, np.ndarray) else copies[0])
        (value.tensor if isinstance(value, own) else value).backward()
        found = [leaf.grad for leaf in leaves]
        return found if isinstance(p.x, list) else found[0]

    return gradient


def by_jax(p: Program, compiled: bool = False) -> Callable[[], Any]:
    maths = own_math(jax.numpy, lambda x: isinstance(x, jax.Array))
    own = with_lists(jax.numpy, jax.numpy.array)
    gradient = jax.grad(ported(p, {math: maths, np: own}, jax.numpy.asarray))
    if compiled:
        gradient = jax.jit(gradient)
    return lambda: jax.block_until_ready(gradient(p.x))


def all_peers(jit: bool = False) -> dict[str, Callable[[Program], Callable[[], Any]]]:
    """Those that are installed; JAX compiled, too, if that is asked for."""
    found: dict[str, Callable[[Program], Callable[[], Any]]] = {}
    if autograd is not None:
        found["autograd"] = by_autograd
    if torch is not None:
        found["torch"] = by_torch
    if jax is not None:
        found["jax"] = by_jax
    if jax is not None and jit:
        found["jax jit"] = lambda p: by_jax(p, compiled=True)
    return found


class TooLong(Exception):
    """A gradient takes more than it may."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in what takes longer than that."""

    def too_long(*_: Any) -> None:
        raise TooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # again, where somebody swallows it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def gradients(p: Program, jit: bool = False) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """The peers' gradients, to be called; and why others have none."""
    ours = numbers(plaingrad.grad(p.f)(p.x))
    works, refused = {}, {}
    for name, make in all_peers(jit).items():
        try:
            with limited(LONGEST):
                gradient = make(p)
                theirs = numbers(gradient())
        except Exception as error:  # whatever somebody else's package raises
            refused[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:90]}"
            continue
        if not np.allclose(theirs, ours, rtol=1e-6, atol=1e-6 * np.max(np.abs(ours))):
            refused[name] = "its gradient is wrong"
        else:
            works[name] = gradient
    return works, refused
