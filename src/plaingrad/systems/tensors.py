"""PyTorch's tensors as values, and calls of its functions differentiated by its own autograd."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import numpy as np

from plaingrad.errors import ChangedSinceError, MissingRuleError
from plaingrad.systems.scripts import held_by_script, is_script
from plaingrad.systems.steps import Step, constants, outputs
from plaingrad.systems.tensor_memory import (
    is_lent,
    memory_of,
    numbers_of,
    parts_in_memory,
    same_bytes,
    version_of,
)

#: Functions whose result has the shape or type of an argument, and no number of it.
FORM_ONLY = frozenset(
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros new_ones new_empty "
    "new_full new_tensor expand_as view_as reshape_as type_as".split()
)


#: Functions that give each argument a result of its own: that of a constant is one.
SEPARATE = frozenset("broadcast_tensors meshgrid atleast_1d atleast_2d atleast_3d".split())


#: Of a tensor: (its version then, the tensor in PyTorch's graph that has its numbers).
LEAF = "_plaingrad_leaf"
#: Of a tensor in memory of NumPy: the copy that steps on a tape have; of that: itself.
COPY = "_plaingrad_copy"
#: What the names of C functions that draw random numbers have in them.
DRAWING = (
    "dropout rand bernoulli multinomial normal rrelu uniform poisson gumbel attention lstm gru rnn".split()
)


class Torch:
    """PyTorch."""

    name = "PyTorch"
    mutable = True

    def varies(self, x: Any) -> bool:
        """Whether `x` is a tensor of real or complex numbers."""
        torch = _torch()
        return isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())

    def cloned(self, x: Any) -> Any:
        """A copy of `x`."""
        return x.clone()

    def copied(self, x: Any) -> Any:
        """A new object for the tensor `x`, in the same memory, as views are."""
        torch = _torch()
        if x.requires_grad and not x.is_leaf:
            with torch.enable_grad():
                return x.view_as(x)
        new = x.detach()
        if LEAF in x.__dict__:
            new.__dict__[LEAF] = x.__dict__[LEAF]
        if type(x) is not torch.Tensor and isinstance(x, torch.nn.Parameter):
            return torch.nn.Parameter(new, x.requires_grad)
        return new.requires_grad_() if x.requires_grad else new

    def made(self, x: Any, number: Any) -> Any:
        """`number` as a tensor like `x`."""
        torch = _torch()
        if isinstance(number, torch.Tensor):
            return number.detach() if number.dtype == x.dtype else number.detach().to(x.dtype)
        if isinstance(number, np.ndarray):
            return torch.as_tensor(number, dtype=x.dtype, device=x.device)
        return torch.full_like(x.detach(), number)

    def taken_in(self, x: Any, like: Any) -> Any:
        """A number or array as a tensor."""
        torch = _torch()
        if isinstance(x, torch.Tensor):
            return x
        if like is None:
            return torch.as_tensor(x, dtype=torch.complex128 if isinstance(x, complex) else torch.float64)
        return torch.tensor(np.asarray(x), dtype=like.dtype, device=like.device)

    def taken_out(self, x: Any, like: Any) -> Any:
        """A tensor as a number or array like `like`."""
        x = x.detach()
        if isinstance(like, np.ndarray):
            return np.array(x.cpu().numpy(), dtype=like.dtype)
        return x.sum().item()

    def run(self, step: Step, leaves: tuple[Any, ...]) -> Any:
        """The step; if it is to be recorded, on tensors that require a gradient."""
        torch = _torch()
        before = torch.get_rng_state() if not step.derived and may_draw(step.f) else None
        given = leaves if step.given is None else step.given
        if step.watch is not None:  # other objects, so that no differentiated one is met but captured ones
            given = [self.copied(x) if self.is_array(x) else x for x in given]
        y = None
        if not step.recording or step.given is not None:
            with _watched(step, given):
                y = step.call(given)
            if not step.derived:
                _check_memory(step, y, given)
        if step.recording:
            with torch.inference_mode(False), torch.enable_grad(), _random_as(None if y is None else before):
                inputs = in_graph(leaves)
                with _watched(step), _in_place_refused(step):
                    z = step.call(inputs)
            _check_memory(step, z, inputs)
            _check_copies(step, z)
            step.saved = inputs, outputs(z, self.varies), [(x, self.version(x)) for x in leaves]
            if not step.derived:
                self._check_recorded(step)
            if y is None:
                y = self._shown(step, leaves, z)
        if y is not None and name_of(step.f) == "detach":
            y = y.detach()
        if before is not None and not torch.equal(before, torch.get_rng_state()):
            step.random = before
        return y

    def _shown(self, step: Step, leaves: Any, z: Any) -> Any:
        """What a plain call returns: in PyTorch's graph only if that is, and in memory that the graph has not.

        So a program may write its tensors: what is recorded stays. A view is one of what the program has.
        """
        torch = _torch()
        if torch.is_grad_enabled() and self._shows_graph(step, leaves):
            return z
        homes = {memory_of(x) for x in step.saved[0]}
        if any(memory_of(part) in homes for part in outputs(z, self.varies)):
            with torch.no_grad():
                return step.call(leaves)
        return _separate(z)

    def held(self, f: Any) -> list[Any]:
        """What a module, or what TorchScript has compiled, has in memory of NumPy."""
        if is_script(f):
            return [x for x in held_by_script(f) if is_lent(x)]
        if not isinstance(f, _torch().nn.Module):
            return []
        return [x for x in (*f.parameters(), *(() if f.training else f.buffers())) if is_lent(x)]

    def kept(self, x: Any) -> Any:
        """A copy of a tensor in memory of NumPy, which may be written past PyTorch; the last one while it is equal."""
        if not is_lent(x) or x.requires_grad:
            return x
        copy, numbers = x.__dict__.get(COPY), numbers_of(x)
        if copy is None or not same_bytes(copy.numpy(), numbers):
            copy = x.__dict__[COPY] = _torch().from_numpy(numbers).clone()
            copy.__dict__[COPY] = copy
        return copy

    def is_array(self, x: Any) -> bool:
        """Whether `x` is a tensor."""
        return isinstance(x, _torch().Tensor)

    def version(self, x: Any) -> Any:
        """What changes when `x` is written, or given other memory."""
        place = x.data_ptr() if x.layout == _torch().strided else 0
        if is_lent(x):  # NumPy writes without counting
            return version_of(x), place, hash(numbers_of(x).tobytes())
        entries = [hash(numbers_of(part).tobytes()) for part in parts_in_memory(x) if is_lent(part)]
        return (version_of(x), place, *entries)

    def stacked(self, each: list[Any]) -> Any:
        """Tensors of one shape along a new first axis."""
        return _torch().stack(each)

    def _check_recorded(self, step: Step) -> None:
        if any(not z.requires_grad for z in step.saved[1]) and name_of(step.f) not in FORM_ONLY | SEPARATE:
            raise MissingRuleError(
                f"`{name_of(step.f)}` of PyTorch is given differentiated numbers, and PyTorch records no derivative "
                "for its result.\n  To go on: plaingrad.stop_gradient of the argument if none is meant; what PyTorch "
                "takes for a constant, `torch.no_grad` inside its own functions say, has no derivative there.\n"
                "  See docs: how-to/pytorch"
            )

    def _shows_graph(self, step: Step, leaves: tuple[Any, ...]) -> bool:
        """Whether a plain call would return tensors that require a gradient."""
        if name_of(step.f) == "detach":
            return False
        if any(x.requires_grad for x in leaves):
            return True
        torch = _torch()
        if isinstance(step.f, torch.nn.Module) and any(p.requires_grad for p in step.f.parameters()):
            return True
        return any(x.requires_grad for x, _ in step.versions)

    def pull(
        self, step: Step, which: tuple[int, ...], bars: Any, leaves: Any, saved: bool
    ) -> tuple[Any, ...]:
        """x_bar by `torch.autograd.grad`."""
        torch = _torch()
        with torch.inference_mode(False), torch.enable_grad():
            if saved and step.saved is not None:
                inputs, ys, versions = step.saved
                _check_versions(step, versions)
                create = False
            else:
                inputs, ys = self._again(step, leaves)
                create = True
            chosen = [ys[k] for k in which]
            weights = [_fit(bar, z) for bar, z in zip(bars, chosen, strict=True)]
            pairs = [(z, bar) for z, bar in zip(chosen, weights, strict=True) if z.requires_grad]
            if len(pairs) > 1 and not create:  # singular vectors that nobody uses, say: 0 times inf is nan
                pairs = [(z, bar) for z, bar in pairs if bar.layout is not torch.strided or bar.any()]
            is_whole = len(pairs) == len(chosen)
            found = _gradients([z for z, _ in pairs], inputs, [bar for _, bar in pairs], create)
        if is_whole:
            _check_used(step, found, inputs)
        return tuple(
            [
                torch.zeros_like(x) if d is None else d if create else d.detach()
                for d, x in zip(found, leaves, strict=True)
            ]
        )

    def _again(self, step: Step, leaves: Any) -> tuple[list[Any], list[Any]]:
        _check_versions(step, ())
        inputs = [node_of(x) if x.requires_grad else outside_of_graph(x).requires_grad_() for x in leaves]
        with _random_as(step.random), _buffers_kept(step.f):
            return inputs, outputs(step.again(inputs), self.varies)

    def push(self, step: Step, leaves: Any, dots: Any, places: tuple[int, ...]) -> tuple[Any, ...]:
        """y_dot as the derivative of the pullback by its cotangent, in which it is linear."""
        torch = _torch()
        with torch.inference_mode(False), torch.enable_grad():
            inputs, ys = self._again(step, leaves)
            if not ys:
                return ()
            if any(x.layout is not torch.strided for x in (*inputs, *ys)):
                raise MissingRuleError(
                    f"`{name_of(step.f)}` of PyTorch has sparse tensors, for which there is no forward mode here.\n"
                    "  To go on: use reverse mode once (grad, vjp), or x.to_dense().\n  See docs: how-to/pytorch"
                )
            weights = [torch.zeros_like(z).requires_grad_() for z in ys]
            pairs = [(z, u) for z, u in zip(ys, weights, strict=True) if z.requires_grad]
            at = [inputs[k] for k in places]
            bars = _gradients([z for z, _ in pairs], at, [u for _, u in pairs], True)
            _check_used(step, bars, at)
            given = [(bar, _fit(dot, bar)) for bar, dot in zip(bars, dots, strict=True) if is_varying(bar)]
            found = _gradients([bar for bar, _ in given], weights, [dot for _, dot in given], True)
            return tuple([torch.zeros_like(z) if d is None else d for d, z in zip(found, ys, strict=True)])


def _torch() -> Any:
    return sys.modules["torch"]


def name_of(f: Any) -> str:
    """The name of a function, for messages."""
    return getattr(f, "__name__", None) or type(f).__qualname__


def may_draw(f: Any) -> bool:
    """Whether a function may draw random numbers."""
    name = getattr(f, "__name__", None)
    return type(f) not in C_FUNCTIONS or any(part in name for part in DRAWING)


def in_graph(leaves: Any) -> list[Any]:
    """The tensors that stand for `leaves` in PyTorch's graph, each a new node.

    Where the program's own tensors are in that graph, what one leaf or a constant depends on may be another leaf. What
    PyTorch finds for a new node is what this step makes of it, and no more.
    """
    return [node_of(leaf_of(x)) for x in leaves]


def node_of(x: Any) -> Any:
    """A new node of PyTorch's graph with the numbers of `x`, which is in the graph."""
    return x.view_as(x) if x.layout is _torch().strided else x.clone()


def outside_of_graph(x: Any) -> Any:
    """`x` without a graph; a tensor of inference mode as one that may have a graph."""
    return x.clone() if x.is_inference() else x.detach()


C_FUNCTIONS = frozenset((BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType))


def leaf_of(x: Any) -> Any:
    """The tensor that stands for `x` in PyTorch's graph: `x` itself if it is in one, else a copy, kept with it."""
    if x.requires_grad:
        return x
    kept = x.__dict__.get(LEAF)
    if kept is None or kept[0] != version_of(x):
        kept = x.__dict__[LEAF] = version_of(x), x.detach().clone().requires_grad_()
    return kept[1]


def _check_memory(step: Step, y: Any, leaves: Any) -> None:
    """Refuse a result of another type in the memory of what is differentiated: bits have no derivative."""
    torch = _torch()
    homes = None
    for part in constants(y):
        if isinstance(part, torch.Tensor) and not (part.is_floating_point() or part.is_complex()):
            if homes is None:
                homes = {memory_of(x) for x in leaves if isinstance(x, torch.Tensor) and x.numel()} - {0}
            if memory_of(part) in homes:
                raise MissingRuleError(
                    f"`{name_of(step.f)}` of PyTorch shows the memory of differentiated numbers as {part.dtype}.\n"
                    "  See docs: how-to/pytorch"
                )


def _check_copies(step: Step, y: Any) -> None:
    """Refuse a result that should lie in memory of NumPy, and lies in the copy of a constant."""
    homes = {memory_of(x) for x in constants((step.args, step.kwargs)) if COPY in getattr(x, "__dict__", ())}
    if homes and any(memory_of(part) in homes for part in constants(y) if isinstance(part, _torch().Tensor)):
        raise MissingRuleError(
            f"`{name_of(step.f)}` of PyTorch returns a part of an argument that lies in memory of NumPy.\n"
            "  To go on: give it a copy, x.clone().\n  See docs: how-to/pytorch"
        )


@contextmanager
def _in_place_refused(step: Step) -> Iterator[None]:
    """Say it by an error of plaingrad if a function writes into what it is given."""
    try:
        yield
    except RuntimeError as error:
        if "used in an in-place operation" not in str(error):
            raise
        raise MissingRuleError(
            f"`{name_of(step.f)}` of PyTorch writes into a differentiated argument, which is not followed there.\n"
            "  To go on: give it a copy, x.clone(), or a form that returns a new tensor.\n  See docs: how-to/pytorch"
        ) from error


def _watched(step: Step, given: Any = ()) -> Any:
    """Show what functions of PyTorch are given meanwhile to what watches over the step, but for `given`."""
    if step.watch is None:
        return nullcontext()
    known = {id(x) for x in given}
    return watching(step.watch if not step.recording else _noting(step), known)


def _noting(step: Step) -> Any:
    """What is shown goes to what watches over the step; those in memory of NumPy are constants of the call, too."""

    def see(x: Any) -> None:
        assert step.watch is not None
        step.watch(x)
        if is_lent(x) and not x.requires_grad and all(x is not other for other, _ in step.versions):
            step.versions.append((x, step.system.version(x)))

    return see


def watching(see: Any, known: Any = ()) -> Any:
    """A context in which `see` is shown what PyTorch's functions are given, but for objects with `known` identities."""
    return _watching()(see, known)


@functools.cache
def _watching() -> Any:
    """The class of contexts that see every call of PyTorch's functions."""

    class Watching(_torch().overrides.TorchFunctionMode):
        def __init__(self, see: Any, known: Any) -> None:
            super().__init__()
            self.see, self.known = see, known

        def __torch_function__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            for part in constants((args, kwargs or {})):
                if id(part) not in self.known:
                    self.see(part)
            return f(*args, **(kwargs or {}))

    return Watching


@contextmanager
def _random_as(state: Any) -> Iterator[None]:
    """Random numbers as from `state`, and afterwards as if none had been drawn; None: as they come."""
    if state is None:
        yield
        return
    torch = _torch()
    now = torch.get_rng_state()
    torch.set_rng_state(state)
    try:
        yield
    finally:
        torch.set_rng_state(now)


@contextmanager
def _buffers_kept(f: Any) -> Iterator[None]:
    """The buffers of a module stay what they are when it is called again."""
    held = (
        [(x, x.detach().clone()) for x in f.buffers()]
        if isinstance(f, _torch().nn.Module) and f.training
        else []
    )
    try:
        yield
    finally:
        with _torch().no_grad():
            for x, was in held:
                x.copy_(was)


def is_varying(x: Any) -> bool:
    """Whether a tensor is in PyTorch's graph."""
    return x is not None and x.requires_grad


def _separate(y: Any) -> Any:
    """Copies of the tensors in a result; the graph has others."""
    torch = _torch()
    if isinstance(y, torch.Tensor):
        inside = y.detach()
        new = inside.clone()
        if y.is_floating_point() or y.is_complex():
            new.__dict__[LEAF] = version_of(new), inside.requires_grad_()
        return new
    if isinstance(y, dict):
        return {key: _separate(part) for key, part in y.items()}
    if isinstance(y, (list, tuple)):
        parts = [_separate(part) for part in y]
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    return y


def _fit(bar: Any, z: Any) -> Any:
    bar = bar if bar.dtype == z.dtype else bar.to(z.dtype)
    return bar if bar.shape == z.shape else bar.expand_as(z)


def _gradients(ys: list[Any], xs: list[Any], bars: list[Any], create: bool) -> Any:
    if not ys or not xs:
        return [None] * len(xs)
    try:
        return _torch().autograd.grad(ys, xs, bars, retain_graph=True, create_graph=create, allow_unused=True)
    except RuntimeError as error:
        if "is not implemented" not in str(error) and "modified by an inplace" not in str(error):
            raise
        raise MissingRuleError(
            f"PyTorch gives no derivative: {error}.\n  See docs: how-to/pytorch"
        ) from error


def _check_used(step: Step, found: Any, inputs: Any) -> None:
    if step.derived or name_of(step.f) in FORM_ONLY or all(d is not None for d in found):
        return
    raise MissingRuleError(
        f"`{name_of(step.f)}` of PyTorch is given a differentiated argument for which PyTorch has no derivative.\n"
        "  To go on: plaingrad.stop_gradient of it, if it does not matter.\n  See docs: how-to/pytorch"
    )


def _check_versions(step: Step, versions: Any) -> None:
    changed = step.changed is not None or any(
        version_of(x) != version[0] for x, version in versions if x.requires_grad
    )
    if changed:
        raise ChangedSinceError(
            f"a tensor that was given to `{name_of(step.f)}` was written before its derivative was taken.\n"
            "  To go on: write into a copy (`x.clone()`).\n  See docs: how-to/pytorch"
        )
