"""`check_grads`: a gradient against finite differences, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plaingrad.api import vjp
from plaingrad.api.leaves import check_callable, described
from plaingrad.copying import deep_copy
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.reverse.inputs import entries_of, has_fields, put
from plaingrad.errors import ArgumentError

STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # relative to the size of the entry
ENTRIES = 64  # arguments with more numbers are compared along random directions as well as at some entries


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    *,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    steps: Sequence[float] = STEPS,
    seed: int = 0,
) -> None:
    """Compare the pullback of `f` at `args` with central differences at several steps.

    For a random cotangent y_bar and each entry of each argument, <y_bar, df/d(entry)> by differences (extrapolated
    from two steps, after Richardson) must agree with the pullback at one step at least. `f` may return any structure
    of real or complex numbers and arrays; it is called on deep copies of `args`.

    Args:
        f: the function.
        args: its positional arguments.
        rtol: relative tolerance.
        atol: absolute tolerance.
        steps: steps of the differences, relative to the size of the entry.
        seed: of the random cotangent.

    Raises:
        AssertionError: they disagree; the message has a line for each entry that does.

    Examples:
        >>> import math
        >>> check_grads(lambda x, y: math.sin(x) * y, (0.5, 2.0))
    """
    check_callable(f, "check_grads")
    if not isinstance(args, (tuple, list)):
        raise ArgumentError(
            f"check_grads takes the arguments of the function in a tuple, not {described(args)}.\n"
            "  To go on: check_grads(f, (x,)).\n  See docs: errors#argument"
        )
    args = tuple(args)
    random = np.random.default_rng(seed)
    y, pullback = vjp(f, *deep_copy(args))
    y_bar = like(y, random)
    gradients = pullback(y_bar)
    places = [
        place
        for n, x in enumerate(args)
        if gradients[n] is not None
        for place in entries(x, gradients[n], f"argument {n}", (n,))
    ]
    if len(places) > ENTRIES:
        chosen = random.choice(len(places), ENTRIES, replace=False)
        places = [places[k] for k in sorted(chosen.tolist())]
    wrong = []
    for place in places:
        ours = place.expected()
        found = [difference(f, args, place, y_bar, step) for step in steps]
        error = min((abs(ours - d) for d in found if d == d), default=float("nan"))
        scale = max(abs(ours), min((abs(d) for d in found if d == d), default=0.0))
        if not error <= atol + rtol * scale and not (ours != ours and all(d != d for d in found)):
            best = min(found, key=lambda d: abs(ours - d) if d == d else float("inf"))
            wrong.append(f"  {place.path}: the pullback gives {ours:.10g}, differences {best:.10g}")
    if wrong:
        name = getattr(f, "__qualname__", repr(f))
        raise AssertionError(
            f"the gradient of {name} disagrees with finite differences:\n" + "\n".join(wrong)
        )


@dataclass(frozen=True)
class Place:
    """One real direction at one entry of the arguments."""

    path: str
    keys: tuple[Any, ...]  # argument number, then keys inside it
    at: tuple[int, ...] | None  # index inside an array
    direction: complex
    x: Any
    x_bar: Any

    def expected(self) -> float:
        """<x_bar, direction>."""
        return float(np.real(np.conjugate(self.x_bar) * self.direction))


def entries(x: Any, x_bar: Any, path: str, keys: tuple[Any, ...]) -> Iterator[Place]:
    """Every entry of `x` that has a gradient in `x_bar`."""
    kind = kind_of(type(x))
    if x_bar is None:
        return
    if kind == NUMBER or isinstance(x, (int, np.integer)):
        yield from directions(path, keys, None, x, x_bar)
    elif kind == ARRAY:
        for at in np.ndindex(x.shape):
            yield from directions(f"{path}[{', '.join(map(str, at))}]", keys, at, x[at], x_bar[at])
    elif kind in (SEQUENCE, MAPPING) or (kind == OBJECT and has_fields(x)):
        for key, value in entries_of(x):
            inner = x_bar[key]
            label = f"{path}.{key}" if kind == OBJECT else f"{path}[{key!r}]"
            yield from entries(value, inner, label, (*keys, key))


def directions(path: str, keys: tuple[Any, ...], at: Any, x: Any, x_bar: Any) -> Iterator[Place]:
    """The real direction at a number, and the imaginary one if it is complex."""
    yield Place(path, keys, at, 1.0, x, x_bar)
    if isinstance(x, (complex, np.complexfloating)):
        yield Place(path + ".imag", keys, at, 1j, x, x_bar)


def difference(f: Callable[..., Any], args: tuple[Any, ...], place: Place, y_bar: Any, step: float) -> float:
    """<y_bar, df> along `place` by central differences at `step` and half of it, extrapolated."""
    size = max(abs(place.x), 1e-3) if place.x == place.x and abs(place.x) < 1e300 else 1.0
    if isinstance(place.x, (np.float32, np.complex64)):
        step = max(step, 1e-3)
    h = step * size

    def central(h: float) -> float:
        high, low = f(*moved(args, place, h)), f(*moved(args, place, -h))
        return (inner(y_bar, high) - inner(y_bar, low)) / (2 * h)

    try:
        return (4 * central(h / 2) - central(h)) / 3
    except (ArithmeticError, ValueError):
        return float("nan")


def moved(args: tuple[Any, ...], place: Place, h: float) -> list[Any]:
    """Deep copies of `args`, with the entry at `place` moved by h along its direction."""
    new = list(deep_copy(args))
    container: Any = new
    for key in place.keys[:-1]:
        container = (
            dict(entries_of(container))[key]
            if not isinstance(container, (list, tuple, dict))
            else container[key]
        )
    key = place.keys[-1]
    if place.at is None:
        step = h * place.direction
        write(new, place.keys, place.x + (step.real if isinstance(step, complex) and not step.imag else step))
        return new
    array = container[key] if isinstance(container, (list, tuple, dict)) else dict(entries_of(container))[key]
    if array.dtype.kind in "iu":
        array = array.astype(float)
        write(new, place.keys, array)
    array[place.at] += h * (place.direction if np.iscomplexobj(array) else place.direction.real)
    return new


def write(container: Any, keys: tuple[Any, ...], value: Any) -> Any:
    """`container` with the entry at `keys` replaced; tuples on the way are rebuilt."""
    key, rest = keys[0], keys[1:]
    if rest:
        old = (
            container[key] if isinstance(container, (list, tuple, dict)) else dict(entries_of(container))[key]
        )
        value = write(old, rest, value)
    if isinstance(container, tuple):
        parts = [value if k == key else part for k, part in enumerate(container)]
        return type(container)(*parts) if hasattr(container, "_fields") else tuple(parts)
    put(container, key, value)
    return container


def like(y: Any, random: np.random.Generator) -> Any:
    """A random cotangent of `y`."""
    kind = kind_of(type(y))
    if kind == NUMBER:
        bar = float(random.normal())
        return complex(bar, random.normal()) if isinstance(y, (complex, np.complexfloating)) else type(y)(bar)
    if kind == ARRAY and y.dtype.kind in "fc":
        bar = random.normal(size=y.shape)
        return (
            (bar + 1j * random.normal(size=y.shape)).astype(y.dtype)
            if y.dtype.kind == "c"
            else np.asarray(bar, y.dtype)
        )
    if kind == SEQUENCE:
        return tuple(like(part, random) for part in y)
    if kind == MAPPING:
        return {key: like(part, random) for key, part in y.items()}
    return None


def inner(y_bar: Any, y: Any) -> float:
    """The real inner product <y_bar, y>, over every number in them."""
    if y_bar is None:
        return 0.0
    if isinstance(y_bar, tuple):
        return sum((inner(bar, part) for bar, part in zip(y_bar, y, strict=True)), 0.0)
    if isinstance(y_bar, dict):
        return sum((inner(bar, y[key]) for key, bar in y_bar.items()), 0.0)
    return float(np.sum(np.real(np.conjugate(y_bar) * y)))
