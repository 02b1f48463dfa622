"""Random programs over arrays of subclasses of ndarray: value, class, attributes and derivatives against the plain call.

    python -m tests.hunts.subclasses --count 1000 --seed 0

A program makes an instance of a class from its argument, or is given one, and does one to three operations with it. Each
result is written down (class, attributes, unit, mask, numbers) in the plain call and under derivatives; derivatives
are compared with finite differences of the plain call. It counts programs that are right, refused by name, wrong, and
crashed, and prints the last two kinds.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import random
import sys
import traceback
import warnings

import numpy as np

from plaingrad import PlaingradError, hvp, jvp, value_and_grad

STEP = 1e-5


class Tagged(np.ndarray):
    """An attribute that results inherit."""

    tag = None

    def __new__(cls, x, tag="m"):
        a = np.asarray(x).view(cls)
        a.tag = tag
        return a

    def __array_finalize__(self, obj):
        if obj is not None:
            self.tag = getattr(obj, "tag", None)


class Wrapped(Tagged):
    """Results of ufuncs remember which it was, and are scaled."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        z = super().__array_wrap__(array, context)
        if context is not None and isinstance(z, Wrapped):
            z = z * 1.0 if context[0] is np.negative else z
            z.tag = context[0].__name__
        return z


class Ufuncs(Tagged):
    """Every ufunc is doubled."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [x.view(np.ndarray) if isinstance(x, Ufuncs) else x for x in inputs]
        if out is not None:
            options["out"] = tuple(x.view(np.ndarray) if isinstance(x, Ufuncs) else x for x in out)
        z = super().__array_ufunc__(ufunc, method, *plain, **options)
        if z is NotImplemented or method == "at":
            return z
        if out is not None:
            return out[0]
        if isinstance(z, (np.ndarray, np.floating)) and z.dtype.kind == "f":
            return Ufuncs(2.0 * z, ufunc.__name__)
        return z


class Functions(Tagged):
    """Every public function of NumPy is counted and scaled."""

    def __array_function__(self, func, types, args, kwargs):
        z = super().__array_function__(func, types, args, kwargs)
        if isinstance(z, np.ndarray) and z.dtype.kind == "f":
            z = (z * 3.0).view(Functions)
            z.tag = func.__name__
        return z


class Methods(Tagged):
    """Overridden methods."""

    def sum(self, *args, **kwargs):
        return 2.0 * super().sum(*args, **kwargs)

    def mean(self, *args, **kwargs):
        return super().mean(*args, **kwargs) * 5.0

    def __add__(self, other):
        return super().__add__(other) * 3.0

    def __mul__(self, other):
        z = super().__mul__(other)
        z.tag = "product"
        return z

    def __getitem__(self, k):
        z = super().__getitem__(k)
        return z if isinstance(z, np.ndarray) else z * 2.0


class Numbers(np.ndarray):
    """Nothing of its own but the name."""


def masked(how):
    def make(x):
        if how == "none":
            return np.ma.array(x)
        mask = np.zeros(np.shape(x), bool)
        mask.flat[:: 2 if how == "some" else 1] = True
        return np.ma.array(x, mask=mask)

    return make


def makers():
    """Name -> a function from a plain array to an instance."""
    found = {
        "Tagged": Tagged,
        "Wrapped": Wrapped,
        "Ufuncs": Ufuncs,
        "Functions": Functions,
        "Methods": Methods,
        "Numbers": lambda x: x.view(Numbers),
        "matrix": np.asmatrix,
        "masked none": masked("none"),
        "masked some": masked("some"),
        "masked all": masked("all"),
        "recarray": lambda x: x.view(np.recarray),
        "memmap": lambda x: x.view(np.memmap),
    }
    for module, make in (
        ("astropy.units", lambda m: lambda x: x * m.m),
        ("unyt", lambda m: lambda x: m.unyt_array(x, "m")),
        ("quantities", lambda m: lambda x: m.Quantity(x, "m")),
        ("pint", lambda m: PINT.setdefault(0, m.UnitRegistry()).Quantity),
    ):
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        if module == "pint":
            registry = library.UnitRegistry()
            found["pint"] = lambda x, registry=registry: registry.Quantity(x, "m")
        else:
            found[module.partition(".")[0]] = make(library)
    return found


PINT: dict = {}

# q is the instance, p another of the same class and shape (q squeezed a little).
OPERATIONS = {
    **{
        f"q {op} p": eval(f"lambda q, p: q {op} p")
        for op in ("+", "-", "*", "/", "<", ">=", "==", "@")
    },
    "q @ p.T": lambda q, p: q @ p.T,
    **{f"q {op} 2.5": eval(f"lambda q, p: q {op} 2.5") for op in ("*", "/", "<")},
    **{f"2.5 {op} q": eval(f"lambda q, p: 2.5 {op} q") for op in ("*", "/")},
    "q ** 2": lambda q, p: q**2,
    "q ** 0.5": lambda q, p: q**0.5,
    "q ** 3": lambda q, p: q**3,
    "-q": lambda q, p: -q,
    "+q": lambda q, p: +q,
    "abs(q)": lambda q, p: abs(q),
    "q + zeros": lambda q, p: q + 0 * p,
    "(q/p) + 1": lambda q, p: (q / p) + 1.0,
    "1 - q/p": lambda q, p: 1.0 - q / p,
    "(q/p) // 1": lambda q, p: (q / p) // 1.0,
    "(q/p) % 1": lambda q, p: (q / p) % 0.7,
    "plain * q": lambda q, p: np.ones(q.shape) * q,
    "q * plain": lambda q, p: q * np.full(q.shape, 1.5),
    "q[0]": lambda q, p: q[0],
    "q[..., 1]": lambda q, p: q[..., 1],
    "q[0, 1]": lambda q, p: q[0, 1],
    "q[[0, 1]]": lambda q, p: q[[0, 1]],
    "q[mask]": lambda q, p: q[np.array([True, False])],
    "q[:, ::-1]": lambda q, p: q[:, ::-1],
    "q[None]": lambda q, p: q[None],
    "q[q > p]": lambda q, p: q[q > p],
    "q.T": lambda q, p: q.T,
    "q.real": lambda q, p: q.real,
    "q.imag": lambda q, p: q.imag,
    "q.flat sum": lambda q, p: [v for v in q.flat][1],
    "for v in q": lambda q, p: [v for v in q],
    "for v in q.ravel()": lambda q, p: [v for v in q.ravel()][-1],
    "sum(q)": lambda q, p: sum(v for v in q),
    **{
        f"q.{name}()": eval(f"lambda q, p: q.{name}()")
        for name in (
            *("sum", "mean", "std", "var", "max", "min", "prod", "cumsum", "cumprod", "ravel", "flatten", "copy"),
            *("transpose", "squeeze", "trace", "diagonal", "argmax", "conj", "nonzero", "any", "all"),
        )
    },
    **{
        f"q.{name}(axis=0)": eval(f"lambda q, p: q.{name}(axis=0)")
        for name in ("sum", "mean", "std", "var", "max", "min", "prod", "cumsum", "argsort")
    },
    "q.sum(axis=1, keepdims=True)": lambda q, p: q.sum(axis=1, keepdims=True),
    "q.ptp": lambda q, p: np.ptp(q, axis=0),
    "q.reshape(-1)": lambda q, p: q.reshape(-1),
    "q.reshape(3, 2)": lambda q, p: q.reshape(3, 2),
    "q.swapaxes": lambda q, p: q.swapaxes(0, 1),
    "q.clip": lambda q, p: q.clip(p, 2 * p),
    "q.dot(p.T)": lambda q, p: q.dot(p.T),
    "q.take": lambda q, p: q.take([0, 2]),
    "q.repeat": lambda q, p: q.repeat(2),
    "q.round(1)": lambda q, p: q.round(1),
    "q.astype(float)": lambda q, p: q.astype(float),
    "q.item(1)": lambda q, p: q.item(1),
    "q.tolist()": lambda q, p: q.tolist(),
    "q.compress": lambda q, p: q.compress([True, False], axis=0),
    "q.view(ndarray)": lambda q, p: q.view(np.ndarray),
    "q.view(type(q))": lambda q, p: q.view(type(q)),
    "q.fill": lambda q, p: (q.fill(q[0, 0]), q)[1],
    "q.sort()": lambda q, p: (q.sort(), q)[1],
    "q.partition": lambda q, p: (q.partition(1), q)[1],
    "q.put": lambda q, p: (q.put([1], q[0, 0]), q)[1],
    **{
        f"np.{name}(q)": eval(f"lambda q, p: np.{name}(q)")
        for name in (
            *("sum", "mean", "std", "var", "max", "min", "prod", "cumsum", "cumprod", "median", "average", "ptp"),
            *("nansum", "nanmean", "nanmax", "nanstd", "nanmedian", "nanprod", "nancumsum", "trace", "diagonal"),
            *("ravel", "transpose", "flip", "fliplr", "flipud", "rot90", "squeeze", "atleast_1d", "atleast_2d"),
            *("atleast_3d", "sort", "copy", "array", "asarray", "asanyarray", "ascontiguousarray", "real", "imag"),
            *("abs", "square", "sqrt", "cbrt", "negative", "positive", "sign", "isfinite", "fabs", "conjugate"),
            *("diff", "gradient", "ediff1d", "unique", "tril", "triu", "diag", "diagflat", "nan_to_num", "argmax"),
            *("zeros_like", "ones_like", "empty_like", "full_like", "floor", "count_nonzero", "cov", "corrcoef"),
            *("column_stack", "amax", "round", "trapezoid", "fix", "isnan", "shape"),
        )
        if name not in ("full_like", "empty_like")
    },
    **{
        f"np.{name}(q / p)": eval(f"lambda q, p: np.{name}(q / (p + p))")
        for name in (
            *("exp", "log", "sin", "cos", "tan", "arctan", "tanh", "log1p", "expm1", "arcsin", "sinh", "log2", "exp2"),
            *("log10", "arcsinh", "deg2rad", "sinc", "i0", "rint", "modf", "frexp", "logical_not"),
        )
    },
    **{
        f"np.{name}(q, p)": eval(f"lambda q, p: np.{name}(q, p)")
        for name in (
            *("add", "subtract", "multiply", "divide", "maximum", "minimum", "hypot", "arctan2", "fmax", "fmin"),
            *("vdot", "kron", "allclose", "array_equal", "isclose", "copysign", "heaviside", "nextafter"),
            *("greater", "equal", "fmod", "remainder", "floor_divide", "divmod"),
        )
    },
    **{
        f"np.{name}(q, p.T)": eval(f"lambda q, p: np.{name}(q, p.T)") for name in ("dot", "matmul", "tensordot")
    },
    "np.inner(q, p)": lambda q, p: np.inner(q, p),
    "np.outer(q[0], p[1])": lambda q, p: np.outer(q[0], p[1]),
    "np.power(q, 2)": lambda q, p: np.power(q, 2),
    "np.cross(q, p)": lambda q, p: np.cross(q, p),
    "np.einsum": lambda q, p: np.einsum("ij,ij->i", q, p),
    "np.concatenate": lambda q, p: np.concatenate([q, p]),
    "np.concatenate axis 1": lambda q, p: np.concatenate((q, p), axis=1),
    "np.vstack": lambda q, p: np.vstack([q, p]),
    "np.hstack": lambda q, p: np.hstack([q, p]),
    "np.dstack": lambda q, p: np.dstack([q, p]),
    "np.stack": lambda q, p: np.stack([q, p]),
    "np.block": lambda q, p: np.block([[q, p]]),
    "np.where": lambda q, p: np.where(np.array([True, False, True]), q, p),
    "np.where(q > p)": lambda q, p: np.where(q > p, q, p),
    "np.select": lambda q, p: np.select([q > p, q <= p], [q, p]),
    "np.clip": lambda q, p: np.clip(q, p, 2 * p),
    "np.reshape": lambda q, p: np.reshape(q, (3, 2)),
    "np.broadcast_to": lambda q, p: np.broadcast_to(q, (2, 2, 3)),
    "np.broadcast_to subok": lambda q, p: np.broadcast_to(q, (2, 2, 3), subok=True),
    "np.broadcast_arrays": lambda q, p: np.broadcast_arrays(q, p[0], subok=True),
    "np.expand_dims": lambda q, p: np.expand_dims(q, 0),
    "np.moveaxis": lambda q, p: np.moveaxis(q, 0, 1),
    "np.swapaxes": lambda q, p: np.swapaxes(q, 0, 1),
    "np.roll": lambda q, p: np.roll(q, 1),
    "np.repeat": lambda q, p: np.repeat(q, 2, axis=0),
    "np.tile": lambda q, p: np.tile(q, (2, 1)),
    "np.take": lambda q, p: np.take(q, [0, 1], axis=1),
    "np.take_along_axis": lambda q, p: np.take_along_axis(q, np.array([[1, 0, 2]]), 1),
    "np.delete": lambda q, p: np.delete(q, 1, axis=1),
    "np.insert": lambda q, p: np.insert(q, 1, p[:, 0], axis=1),
    "np.append": lambda q, p: np.append(q, p),
    "np.split": lambda q, p: np.split(q, 3, axis=1),
    "np.array_split": lambda q, p: np.array_split(q, 2, axis=1),
    "np.pad": lambda q, p: np.pad(q, 1),
    "np.pad edge": lambda q, p: np.pad(q, 1, mode="edge"),
    "np.interp": lambda q, p: np.interp(q[0] / p[0], np.array([0.0, 1.0, 3.0]), p[1]),
    "np.linspace": lambda q, p: np.linspace(q[0], p[0], 4),
    "np.searchsorted": lambda q, p: np.searchsorted(np.sort(q[0]), p[0]),
    "np.percentile": lambda q, p: np.percentile(q, 30),
    "np.quantile axis": lambda q, p: np.quantile(q, 0.3, axis=1),
    "np.median axis": lambda q, p: np.median(q, axis=0),
    "np.mean axis keepdims": lambda q, p: np.mean(q, axis=0, keepdims=True),
    "np.sum axis": lambda q, p: np.sum(q, axis=0),
    "np.average weights": lambda q, p: np.average(q, axis=1, weights=np.array([1.0, 2.0, 3.0])),
    "np.full_like": lambda q, p: np.full_like(q, q[0, 0]),
    "np.apply_along_axis": lambda q, p: np.apply_along_axis(np.sum, 0, q),
    "np.meshgrid": lambda q, p: np.meshgrid(q[0], p[1]),
    "np.convolve": lambda q, p: np.convolve(q[0], p[1]),
    "np.polyval": lambda q, p: np.polyval([1.0, 2.0], q / p),
    "np.histogram": lambda q, p: np.histogram(q / p)[0],
    "np.cumulative": lambda q, p: np.add.accumulate(q, axis=1),
    "np.add.reduce": lambda q, p: np.add.reduce(q, axis=0),
    "np.multiply.reduce": lambda q, p: np.multiply.reduce(q / p, axis=0),
    "np.maximum.reduce": lambda q, p: np.maximum.reduce(q, axis=0),
    "np.multiply.outer": lambda q, p: np.multiply.outer(q[0], p[1]),
    "np.add.at": lambda q, p: (np.add.at(q, ([0, 0], [1, 1]), p[0, 0]), q)[1],
    "np.add out": lambda q, p: np.add(q, p, out=p),
    "np.multiply where": lambda q, p: np.multiply(q, 2.0, out=q, where=np.array([True, False, True])),
    "np.sum out": lambda q, p: np.sum(q, axis=0, out=p[0]),
    "np.copyto": lambda q, p: (np.copyto(q, p, where=np.array([True, False, True])), q)[1],
    "np.putmask": lambda q, p: (np.putmask(q, np.array([[True, False, True]] * 2), p), q)[1],
    "np.fill_diagonal": lambda q, p: (np.fill_diagonal(q, p[0, 0]), q)[1],
    "np.ndarray.sum": lambda q, p: np.ndarray.sum(q),
    "np.linalg.norm": lambda q, p: np.linalg.norm(q),
    "np.linalg.norm axis": lambda q, p: np.linalg.norm(q, axis=1),
    "np.linalg.inv": lambda q, p: np.linalg.inv(q[:, :2]),
    "np.linalg.det": lambda q, p: np.linalg.det(q[:, 1:]),
    "np.linalg.solve": lambda q, p: np.linalg.solve(q[:, :2], p[:, 2]),
    "np.linalg.pinv": lambda q, p: np.linalg.pinv(q),
    "np.linalg.svd": lambda q, p: np.linalg.svd(q, compute_uv=False),
    "np.linalg.qr": lambda q, p: np.linalg.qr(q[:, :2]),
    "np.linalg.eigvalsh": lambda q, p: np.linalg.eigvalsh(q[:, :2]),
    "np.linalg.matrix_power": lambda q, p: np.linalg.matrix_power(q[:, :2] / p[:, :2], 2),
    "np.fft.rfft": lambda q, p: abs(np.fft.rfft(q)),
    "q += p": lambda q, p: operator_in_place("+=", q, p),
    "q -= p": lambda q, p: operator_in_place("-=", q, p),
    "q *= 2": lambda q, p: operator_in_place("*=", q, 2.0),
    "q /= 2": lambda q, p: operator_in_place("/=", q, 2.0),
    "q[0] = p[1]": lambda q, p: put(q, 0, p[1]),
    "q[:, 1] = p[:, 0]": lambda q, p: put(q, (slice(None), 1), p[:, 0]),
    "q[[0, 1]] = p": lambda q, p: put(q, [0, 1], p),
    "q[0, 0] = p[1, 1]": lambda q, p: put(q, (0, 0), p[1, 1]),
    "q[q > p] = 0 q": lambda q, p: put(q, q < p * 1.2, p[0, 0]),
    "q[0] += p[0]": lambda q, p: put(q, 0, q[0] + p[0]),
    "view written": lambda q, p: (put(q.T, 0, p[:, 0]), q)[1],
    "np.ma.sum": lambda q, p: np.ma.sum(q),
    "np.ma.where": lambda q, p: np.ma.where(np.array([True, False, True]), q, p),
    "np.ma.filled": lambda q, p: np.ma.filled(q, 0.0),
    "np.ma.masked_where": lambda q, p: np.ma.masked_where(np.array([[True, False, True]] * 2), q),
    "np.ma.average": lambda q, p: np.ma.average(q),
    "np.ma.median": lambda q, p: np.ma.median(q),
    "np.ma.concatenate": lambda q, p: np.ma.concatenate([q, p]),
    "copy.copy": lambda q, p: importlib.import_module("copy").copy(q),
    "copy.deepcopy": lambda q, p: importlib.import_module("copy").deepcopy(q),
    "float(sum)": lambda q, p: float((q / p).sum()),
    "math.sin": lambda q, p: importlib.import_module("math").sin((q / p)[0, 1]),
    "str": lambda q, p: (str(q)[:0], q)[1],
    "np.vectorize": lambda q, p: np.vectorize(lambda v: v * v)(q),
    "max(list)": lambda q, p: max(list(q.ravel())),
}


def operator_in_place(op, q, p):
    if op == "+=":
        q += p
    elif op == "-=":
        q -= p
    elif op == "*=":
        q *= p
    else:
        q /= p
    return q


def put(q, k, v):
    q[k] = v
    return q


def look(y):
    """What can be seen of a value: class, attributes, unit, mask and numbers."""
    if isinstance(y, (list, tuple)):
        return (type(y).__name__, [look(part) for part in y])
    extra = [repr(getattr(y, name, None)) for name in ("tag", "unit", "units", "dimensionality")]
    if isinstance(y, np.ma.MaskedArray):
        return (type(y), y.shape, str(y.dtype), np.ma.getmaskarray(y).tolist(), as_numbers(y))
    return (type(y), np.shape(y), str(getattr(y, "dtype", "")), extra, as_numbers(y))


def as_numbers(y):
    """The numbers of a value as a plain array; those that are masked are 0."""
    if isinstance(y, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(y, 0.0)) if y.dtype.kind in "fc" else np.zeros(0)
    if isinstance(y, (list, tuple)):
        parts = [np.ravel(as_numbers(part)) for part in y]
        return np.concatenate(parts) if parts else np.zeros(0)
    if hasattr(y, "magnitude"):
        y = y.magnitude
    if isinstance(y, np.ndarray):
        y = y.view(np.ndarray)
    elif hasattr(y, "value") and not isinstance(y, np.generic):
        y = y.value
    return np.asarray(y) if isinstance(y, (np.ndarray, np.generic, float, complex)) else np.zeros(0)


def weighted(y):
    """A number that depends on all numbers of a result."""
    numbers = as_numbers(y)
    if numbers.dtype.kind != "f" or numbers.size == 0:
        return 0.0
    w = np.cos(np.arange(numbers.size) + 0.3).reshape(numbers.shape)
    return float(np.sum(w * numbers * numbers + w * numbers))


class Program:
    """`f(x)`: an instance made of `x`, then the operations one after the other."""

    def __init__(self, maker, names, given):
        self.make = makers()[maker] if isinstance(maker, str) else maker
        self.names = names
        self.given = given
        self.seen = []

    def __call__(self, x):
        q = x if self.given else self.make(x)
        p = self.make(np.array(x.view(np.ndarray) if isinstance(x, np.ndarray) else as_numbers(x)) * 0.75 + 0.1)
        total = 0.0
        for name in self.names:
            y = OPERATIONS[name](q, p)
            self.seen.append(look(y))
            total = total + weighted(y)
            if getattr(y, "shape", None) == q.shape and type(y) is type(q):
                q = y
        return total + weighted(q)


def same(a, b):
    """Whether what was seen is the same, but for rounding."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def outcome(program, x, seed):
    """(kind, what) of one program at the plain array `x`."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(x.shape)

    def argument(x):
        return program.make(x) if program.given else x

    def run(f, *args):
        program.seen = []
        try:
            return f(*args), None
        except PlaingradError as error:
            return None, error
        except Exception as error:
            return None, error

    value, failed = run(program, argument(x.copy()))
    plain = list(program.seen)
    if failed is not None:
        _, error = run(value_and_grad(program), argument(x.copy()))
        if error is None:
            return "wrong", f"plain raises {failed!r}, the derivative does not"
        if isinstance(error, PlaingradError):
            return "refused", str(error).splitlines()[0]
        if type(error) is not type(failed):
            return "crashed", f"{type(error).__name__}: {error} for {type(failed).__name__}: {failed}"
        return "raises", ""
    slope = (
        float(program(argument(x + STEP * direction))) - float(program(argument(x - STEP * direction)))
    ) / (2 * STEP)
    scale = max(1.0, abs(slope), abs(value))
    is_array = isinstance(argument(x), np.ndarray)

    def reverse():
        y, x_bar = value_and_grad(program)(argument(x.copy()))
        return y, float(np.sum(np.asarray(x_bar) * direction)) if is_array else None

    def forward():
        return jvp(program, (argument(x.copy()),), (direction,))

    results = {"reverse": reverse}
    if is_array:
        results["forward"] = forward
    for mode, f in results.items():
        result, error = run(f)
        if isinstance(error, PlaingradError):
            return "refused", f"{mode}: {error}"
        if error is not None:
            text = "".join(traceback.format_exception(error)[-3:])
            return "crashed", f"{mode}: {type(error).__name__}: {error}\n{text}"
        y, found = result
        if not same(plain, program.seen):
            for k, (a, b) in enumerate(zip(plain, program.seen)):
                if not same(a, b):
                    return "wrong", f"{mode}: result {k} is {b}\n   for {a}"
            return "wrong", f"{mode}: {len(program.seen)} results for {len(plain)}"
        if not np.allclose(float(y), float(value), rtol=1e-9, atol=1e-12, equal_nan=True):
            return "wrong", f"{mode}: value {y} for {value}"
        if found is not None and not np.isnan(slope) and not abs(float(found) - slope) <= 2e-4 * scale:
            return "wrong", f"{mode}: derivative {found} for {slope}"
    if is_array and not program.given and seed % 4 == 0:
        result, error = run(lambda: hvp(program, (x.copy(),), (direction,)))
        if isinstance(error, PlaingradError):
            return "refused", f"hvp: {error}"
        if error is not None:
            return "crashed", f"hvp: {type(error).__name__}: {error}\n{''.join(traceback.format_exception(error)[-3:])}"
        with warnings.catch_warnings():
            up = value_and_grad(program)(x + STEP * direction)[1]
            down = value_and_grad(program)(x - STEP * direction)[1]
        wanted = (np.asarray(up) - np.asarray(down)) / (2 * STEP)
        found = result[0] if isinstance(result, tuple) else result
        found = np.asarray(found[0] if isinstance(found, tuple) else found)
        if np.shape(found) == wanted.shape and not np.allclose(
            found, wanted, rtol=1e-3, atol=1e-3 * max(1.0, np.abs(wanted).max()), equal_nan=True
        ):
            return "wrong", f"hvp: {found} for {wanted}"
    return "right", ""


def main(argv=None):
    """Run the hunt; the exit status is 1 if anything was wrong or crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", action="store_true", help="every class with every operation, once")
    parser.add_argument("--only", default="", help="classes whose names contain this")
    parser.add_argument("--refused", action="store_true", help="print what is refused, too")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    classes = {name: make for name, make in makers().items() if options.only in name}
    rng = random.Random(options.seed)
    if options.each:
        cases = [(cls, (name,), given) for cls in classes for name in OPERATIONS for given in (False,)]
    else:
        cases = [
            (rng.choice(list(classes)), tuple(rng.choices(list(OPERATIONS), k=rng.choice((1, 2, 2, 3)))), rng.random() < 0.3)
            for _ in range(options.count)
        ]
    counts: dict = collections.defaultdict(collections.Counter)
    for k, (cls, names, given) in enumerate(cases):
        x = np.array([[1.3, 2.1, 0.7], [0.4, 1.9, 2.6]]) + 0.1 * np.random.default_rng(options.seed + k).random((2, 3))
        kind, what = outcome(Program(classes[cls], names, given), x, options.seed + k)
        counts[cls][kind] += 1
        if kind in ("wrong", "crashed") or (kind == "refused" and options.refused):
            print(f"{kind}: {cls}, {'given' if given else 'made'}: {' ; '.join(names)}\n   {what[:1200]}", flush=True)
    total: collections.Counter = collections.Counter()
    for cls, counter in counts.items():
        print(cls, dict(counter))
        total += counter
    print("all", dict(total))
    return 1 if total["wrong"] or total["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
