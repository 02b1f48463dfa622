"""Runs a program plainly and under plaingrad, and compares everything that a caller can see."""

import collections
import copy
import math
import struct
import types

import numpy as np

import plaingrad
from plaingrad.api.leaves import leaf_values, structures_of
from plaingrad.engine.sparsity.patterns import find_pattern
from plaingrad.engine.taylor.jets import JetLevel
from plaingrad.engine.forward.push import push

RTOL = 1e-12


class Fields:
    """The expected gradient of an object: one entry per attribute (attributes not named are not compared)."""

    def __init__(self, **fields):
        self.fields = fields


def nothing():
    return None


def slots_of(o):
    return [name for c in type(o).__mro__ for name in getattr(c, "__slots__", ()) if hasattr(o, name)]


def same(a, b):
    """True if a and b are equal to the last bit, types included."""
    if type(a).__qualname__ != type(b).__qualname__:
        return False
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return a.shape == b.shape and same(a.tolist(), b.tolist())
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(u, v) for u, v in zip(a, b, strict=True))
    if isinstance(a, (type, types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
        return a == b
    if hasattr(a, "__dict__"):
        return same(vars(a), vars(b)) and all(same(getattr(a, n), getattr(b, n)) for n in slots_of(a))
    if slots_of(a):
        return all(same(getattr(a, n), getattr(b, n)) for n in slots_of(a))
    return a == b


def assert_close(got, expected, rtol=None, where="gradient"):
    """Asserts that `got` has the structure of `expected` and its numbers to a relative `rtol`."""
    rtol = RTOL if rtol is None else max(rtol, RTOL)
    if expected is None:
        assert got is None, f"{where}: expected None, got {got!r}"
    elif isinstance(expected, Fields):
        for name, value in expected.fields.items():
            assert_close(getattr(got, name), value, rtol, f"{where}.{name}")
            assert_close(got[name], value, rtol, f"{where}[{name!r}]")
    elif isinstance(expected, dict):
        assert isinstance(got, dict) and list(got) == list(expected), f"{where}: {got!r} is not {expected!r}"
        for key in expected:
            assert_close(got[key], expected[key], rtol, f"{where}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        assert type(got) is type(expected), f"{where}: {got!r} is not a {type(expected).__name__}"
        assert len(got) == len(expected), f"{where}: {got!r} has not the length of {expected!r}"
        for i, (u, v) in enumerate(zip(got, expected, strict=True)):
            assert_close(u, v, rtol, f"{where}[{i}]")
    elif isinstance(expected, np.ndarray):
        assert isinstance(got, np.ndarray), f"{where}: {got!r} is not an array"
        assert got.shape == expected.shape, f"{where}: shape {got.shape} is not {expected.shape}"
        assert got.dtype == expected.dtype, f"{where}: dtype {got.dtype} is not {expected.dtype}"
        scale = np.max(np.abs(expected), initial=0.0)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * scale * 1e-1, err_msg=where)
    elif isinstance(expected, np.generic):
        assert np.dtype(type(got)) == expected.dtype, f"{where}: {got!r} is not {expected.dtype}"
        assert abs(got - expected) <= rtol * abs(expected) + 1e-300, f"{where}: {got!r} is not {expected!r}"
    elif isinstance(expected, complex):
        assert isinstance(got, complex), f"{where}: {got!r} is not complex"
        assert abs(got - expected) <= rtol * abs(expected) + 1e-300, f"{where}: {got!r} is not {expected!r}"
    else:
        assert isinstance(got, float), f"{where}: {got!r} is not a float"
        assert math.isclose(got, expected, rel_tol=rtol, abs_tol=1e-300 if expected else rtol), (
            f"{where}: {got!r} is not {expected!r}"
        )


def one_like(y):
    return np.ones_like(y)[()] if isinstance(y, (np.ndarray, np.generic)) else type(y)(1)


def check(f, *args, gradient, setup=nothing, state=nothing, rtol=None):
    """Asserts value, gradient, repeatability and side effects of f at args.

    Args:
        gradient: the expected gradient; a tuple with one entry per argument if there are several.
        setup: called before every run of f, puts outside state back.
        state: called after every run of f, returns outside state to compare with the plain run's.
        rtol: a looser tolerance, where the numbers are not float64.
    """
    argnums = tuple(range(len(args))) if len(args) > 1 else 0

    setup()
    plain_args = copy.deepcopy(args)
    plain_value = f(*plain_args)
    plain_state = copy.deepcopy(state())

    def assert_as_plain(value, left_args):
        assert same(value, plain_value), f"value {value!r} is not the plain call's {plain_value!r}"
        assert same(left_args, plain_args), f"arguments are left as {left_args!r}, not {plain_args!r}"
        left = state()
        assert same(left, plain_state), f"state is left as {left!r}, not {plain_state!r}"

    seen = []
    for _ in range(2):
        setup()
        left_args = copy.deepcopy(args)
        value, g = plaingrad.value_and_grad(f, argnums)(*left_args)
        assert_as_plain(value, left_args)
        assert_close(g, gradient, rtol)
        seen.append(g)
    assert_close(seen[0], gradient, rtol, "first gradient, after the second was taken")

    setup()
    left_args = copy.deepcopy(args)
    value, pullback = plaingrad.vjp(f, *left_args)
    assert_as_plain(value, left_args)
    per_argument = gradient if len(args) > 1 else (gradient,)
    assert_close(pullback(one_like(plain_value)), per_argument, rtol, "pullback")
    assert_close(pullback(one_like(plain_value)), per_argument, rtol, "second pullback")
    assert_as_plain(value, left_args)

    # Forward mode along a direction, and two at once, against the inner product with the reverse gradient
    found = pullback(one_like(plain_value))
    first, second = (direction(found, np.random.default_rng(seed)) for seed in (1, 2))
    for _ in range(2):
        setup()
        left_args = copy.deepcopy(args)
        value, value_dot = plaingrad.jvp(f, left_args, first)
        assert_as_plain(value, left_args)
        assert_inner(value_dot, found, first, rtol, "jvp")
    setup()
    left_args = copy.deepcopy(args)
    value, chunk = push(f, left_args, both(first, second), {}, 2)
    assert_as_plain(value, left_args)
    assert np.shape(chunk) == (2, *np.shape(plain_value))
    for k, along in enumerate((first, second)):
        assert_inner(chunk[k], found, along, rtol, f"tangent {k} of a chunk")

    # Taylor coefficients 1 and 2 along the direction, in one run, against forward mode applied to itself
    setup()
    left_args = copy.deepcopy(args)
    value, jets = push(f, left_args, both(first, nowhere(first)), {}, 2, JetLevel)
    assert_as_plain(value, left_args)
    assert np.shape(jets) == (2, *np.shape(plain_value))
    assert_inner(jets[0], found, first, rtol, "coefficient 1")

    def slope(*xs):
        setup()
        return plaingrad.jvp(f, xs, first)[1]

    curvature = plaingrad.jvp(slope, copy.deepcopy(args), first)[1] / 2
    size = max(abs(curvature), abs(jets[0]), 1e-3)
    assert abs(jets[1] - curvature) <= max(rtol or 0.0, 1e-9) * size or same(float(jets[1]), float(curvature)), (
        f"coefficient 2 of Taylor's series: {jets[1]!r} is not {curvature!r}"
    )

    # Index sets: every number with a derivative is in the pattern
    setup()
    left_args = copy.deepcopy(args)
    structures, leaves = structures_of(left_args)
    values = []
    _, columns = find_pattern(f, left_args, tuple(range(len(args))), {}, lambda y: values.append(y) or [y])
    assert_as_plain(values[0], left_args)
    starts = np.cumsum([0, *[leaf.size for leaf in leaves]])
    for structure, x_bar in zip(structures, found, strict=True):
        for position, bar in leaf_values(structure, x_bar).items():
            missing = set((starts[position] + np.flatnonzero(bar)).tolist()) - set(columns.tolist())
            assert not missing, f"the pattern misses {missing}"


def direction(x_bar, random):
    """A random tangent with the structure of a gradient."""
    if x_bar is None:
        return None
    if isinstance(x_bar, plaingrad.Tangent):
        return plaingrad.Tangent(x_bar.primal_type, {name: direction(x_bar[name], random) for name in x_bar})
    if isinstance(x_bar, dict):
        return {key: direction(part, random) for key, part in x_bar.items()}
    if isinstance(x_bar, (list, tuple, collections.deque)):
        parts = [direction(part, random) for part in x_bar]
        return type(x_bar)(*parts) if hasattr(x_bar, "_fields") else type(x_bar)(parts)
    if isinstance(x_bar, np.ndarray):
        numbers = random.normal(size=x_bar.shape)
        return (numbers + 1j * random.normal(size=x_bar.shape) if x_bar.dtype.kind == "c" else numbers).astype(x_bar.dtype)
    if isinstance(x_bar, (complex, np.complexfloating)):
        return type(x_bar)(complex(*random.normal(size=2)))
    return type(x_bar)(random.normal())


def nowhere(a):
    """A tangent of zeros with the structure of `a`."""
    if a is None:
        return None
    if isinstance(a, plaingrad.Tangent):
        return plaingrad.Tangent(a.primal_type, {name: nowhere(a[name]) for name in a})
    if isinstance(a, dict):
        return {key: nowhere(part) for key, part in a.items()}
    if isinstance(a, (list, tuple, collections.deque)):
        parts = [nowhere(part) for part in a]
        return type(a)(*parts) if hasattr(a, "_fields") else type(a)(parts)
    return a * 0


def both(a, b):
    """Two tangents as a chunk: every leaf with a leading axis."""
    if a is None:
        return None
    if isinstance(a, plaingrad.Tangent):
        return plaingrad.Tangent(a.primal_type, {name: both(a[name], b[name]) for name in a})
    if isinstance(a, dict):
        return {key: both(a[key], b[key]) for key in a}
    if isinstance(a, (list, tuple, collections.deque)):
        parts = [both(u, v) for u, v in zip(a, b, strict=True)]
        return type(a)(*parts) if hasattr(a, "_fields") else type(a)(parts)
    return np.stack([a, b])


def terms(x_bar, x_dot):
    """The terms of the inner product Re(conj(x_bar) * x_dot), as floats."""
    if x_bar is None:
        return []
    if isinstance(x_bar, (dict, plaingrad.Tangent)):
        return [term for key in x_bar for term in terms(x_bar[key], x_dot[key])]
    if isinstance(x_bar, (list, tuple, collections.deque)):
        return [term for u, v in zip(x_bar, x_dot, strict=True) for term in terms(u, v)]
    if isinstance(x_bar, (np.ndarray, np.generic)):
        return np.real(np.conj(x_bar) * x_dot).ravel().astype(float).tolist()
    return [float((x_bar.conjugate() * x_dot).real)]


def assert_inner(y_dot, x_bar, x_dot, rtol, where):
    """Asserts y_dot = <x_bar, x_dot>, relative to the size of the terms."""
    every = terms(x_bar, x_dot)
    expected = math.fsum(every)
    got = float(np.real(y_dot if y_dot is not None else 0.0))
    bound = max(rtol or 0.0, RTOL) * max(math.fsum(map(abs, every)), abs(expected)) + 1e-300
    assert abs(got - expected) <= bound or got == expected, f"{where}: {got!r} is not {expected!r}"


def check_or_refused(f, *args, gradient, **options):
    """As `check`, where DESIGN 2.3 also allows a clear refusal."""
    try:
        plaingrad.vjp(f, *copy.deepcopy(args))
    except plaingrad.MissingRuleError:
        return
    check(f, *args, gradient=gradient, **options)
