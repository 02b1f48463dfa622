"""Hazard 14: an array of a subclass of ndarray must be what the plain call makes of it, and have its derivative."""

import math
import sys
import threading

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, hvp, jvp, value_and_grad, vjp


class Tagged(np.ndarray):
    """An attribute that results inherit."""

    def __new__(cls, x, tag="m"):
        a = np.asarray(x).view(cls)
        a.tag = tag
        return a

    def __array_finalize__(self, obj):
        self.tag = getattr(obj, "tag", None)


class Doubling(Tagged):
    """Every ufunc gives twice what it gives for plain arrays."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [x.view(np.ndarray) if isinstance(x, Doubling) else x for x in inputs]
        if out is not None:
            options["out"] = tuple(x.view(np.ndarray) if isinstance(x, Doubling) else x for x in out)
        z = super().__array_ufunc__(ufunc, method, *plain, **options)
        if out is not None:
            return out[0]
        return Doubling(2.0 * z, ufunc.__name__) if np.asarray(z).dtype.kind == "f" else z


class Tripling(Tagged):
    """Every public function gives three times as much."""

    def __array_function__(self, func, types, args, kwargs):
        z = super().__array_function__(func, types, args, kwargs)
        return 3.0 * z if getattr(z, "dtype", np.dtype(int)).kind == "f" else z


class Wrapping(Tagged):
    """Results remember which ufunc they came from, and of what."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        z = super().__array_wrap__(array, context)
        if context is not None:
            z.tag = (context[0].__name__, [type(x).__name__ for x in context[1]])
        return z


class Methods(Tagged):
    """Methods of its own."""

    def sum(self, *args, **kwargs):
        return 2.0 * super().sum(*args, **kwargs)

    def mean(self, *args, **kwargs):
        return 5.0 * super().mean(*args, **kwargs)

    def __add__(self, other):
        return super().__add__(other) * 3.0

    def __getitem__(self, k):
        z = super().__getitem__(k)
        return z if isinstance(z, np.ndarray) else z * 2.0


X = np.array([[1.3, 2.1, 0.7], [0.4, 1.9, 2.6]])
HALF = np.array([[True, False, True], [False, True, False]])


def numbers(y):
    """All numbers of a value; masked ones are 0."""
    if isinstance(y, (list, tuple)):
        return np.concatenate([numbers(part) for part in y])
    if isinstance(y, np.ma.MaskedArray):
        return np.ravel(np.ma.filled(y, 0.0))
    return np.ravel(y.view(np.ndarray) if isinstance(y, np.ndarray) else np.asarray(y, float))


def description(y):
    """Class, attributes and mask of a value."""
    if isinstance(y, (list, tuple)):
        return [description(part) for part in y]
    mask = np.ma.getmaskarray(y).tolist() if isinstance(y, np.ma.MaskedArray) else None
    return type(y), np.shape(y), getattr(y, "tag", None), mask


def check(make, operation, x=X, second=True):
    """Class, attributes, value and derivatives of operation(make(x)) in both modes, against the plain call."""
    seen = []

    def f(x):
        y = operation(make(x))
        seen.append(description(y))
        z = numbers(y)
        return float(np.sum(z * z * np.arange(1.0, 1.0 + z.size)))

    value = f(x.copy())
    step, direction = 1e-5, np.cos(np.arange(x.size)).reshape(x.shape)
    slope = (f(x + step * direction) - f(x - step * direction)) / (2 * step)
    y, x_bar = value_and_grad(f)(x.copy())
    assert type(x_bar) is np.ndarray and x_bar.shape == x.shape
    z, z_dot = jvp(f, (x.copy(),), (direction,))
    assert y == pytest.approx(value, rel=1e-12) and z == pytest.approx(value, rel=1e-12)
    assert seen == seen[:1] * len(seen), "the class and the attributes are those of the plain call"
    assert np.sum(x_bar * direction) == pytest.approx(slope, rel=1e-5, abs=1e-6)
    assert float(z_dot) == pytest.approx(slope, rel=1e-5, abs=1e-6)
    if second:
        up, down = grad(f)(x + step * direction), grad(f)(x - step * direction)
        curved = hvp(f, (x.copy(),), (direction,))
        curved = curved[0] if isinstance(curved, tuple) else curved
        assert np.asarray(curved) == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-4)


def refused(f, *args):
    with pytest.raises(plaingrad.PlaingradError) as caught:
        f(*args)
    return str(caught.value)


OPERATIONS = {
    "a + a": lambda a: a + a,
    "a * plain": lambda a: a * np.full((2, 3), 1.5),
    "plain * a": lambda a: np.full((2, 3), 1.5) * a,
    "2 / a": lambda a: 2.0 / a,
    "a ** 2": lambda a: a**2,
    "-a": lambda a: -a,
    "abs": lambda a: abs(a),
    "reshape": lambda a: a.reshape(3, 2),
    "ravel": lambda a: a.ravel(),
    "transpose": lambda a: a.transpose(),
    "T": lambda a: a.T,
    "np.reshape": lambda a: np.reshape(a, -1),
    "np.transpose": lambda a: np.transpose(a),
    "flip": lambda a: np.flip(a),
    "broadcast_to": lambda a: np.broadcast_to(a, (2, 2, 3), subok=True),
    "broadcast_to base": lambda a: np.broadcast_to(a, (2, 2, 3)),
    "concatenate": lambda a: np.concatenate([a, a * 2.0]),
    "stack": lambda a: np.stack([a, a]),
    "where": lambda a: np.where(HALF, a, 2.0 * a),
    "sum": lambda a: a.sum(),
    "np.sum": lambda a: np.sum(a),
    "np.sum axis": lambda a: np.sum(a, axis=0),
    "np.mean": lambda a: np.mean(a, axis=1),
    "std": lambda a: a.std(),
    "np.var": lambda a: np.var(a, axis=0),
    "cumsum": lambda a: np.cumsum(a, axis=1),
    "max": lambda a: a.max(),
    "median": lambda a: np.median(a, axis=1),
    "average": lambda a: np.average(a, axis=1, weights=np.array([1.0, 2.0, 3.0])),
    "exp": lambda a: np.exp(a),
    "maximum": lambda a: np.maximum(a, 1.5),
    "row": lambda a: a[0],
    "element": lambda a: a[1, 2],
    "fancy": lambda a: a[[1, 0, 1]],
    "mask": lambda a: a[HALF],
    "loop": lambda a: [row * 2.0 for row in a],
    "in place": lambda a: in_place(a * 1.0),
    "written": lambda a: written(a * 1.0),
    "copy": lambda a: a.copy(),
    "np.array": lambda a: np.array(a),
    "asanyarray": lambda a: np.asanyarray(a),
    "astype": lambda a: a.astype(float),
    "take": lambda a: np.take(a, [2, 0], axis=1),
    "sort": lambda a: np.sort(a, axis=0),
    "dot": lambda a: np.dot(a, a.T),
    "matmul": lambda a: a @ a.T,
    "inv": lambda a: np.linalg.inv(a[:, :2]),
    "add.reduce": lambda a: np.add.reduce(a, axis=0),
    "out": lambda a: np.multiply(a, 3.0, out=a * 1.0),
    "diff": lambda a: np.diff(a),
    "clip": lambda a: a.clip(0.5, 2.0),
}


def in_place(a):
    a += 1.0
    a *= a
    a[0] *= 3.0
    return a


def written(a):
    a[0] = a[1]
    a[:, 1] = 4.0 * a[:, 0]
    a.T[2] = 1.0
    return a


CLASSES = {
    "Tagged": Tagged,
    "Wrapping": Wrapping,
    "Doubling": Doubling,
    "Tripling": Tripling,
    "Methods": Methods,
    "memmap": lambda x: x.view(np.memmap),
    "recarray": lambda x: x.view(np.recarray),
    "masked": lambda x: np.ma.array(x, mask=HALF),
    "not masked": lambda x: np.ma.array(x),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.filterwarnings("ignore")
def test_an_operation_gives_the_class_the_attributes_and_the_derivative_of_the_plain_call(cls, operation):
    if operation == "matmul" and "masked" in cls:
        pytest.skip("NumPy cannot: the masks have other shapes")
    if cls == "Doubling" and operation == "inv":  # LAPACK's functions are ufuncs, too
        message = refused(grad(lambda x: np.sum(np.asarray(np.linalg.inv(Doubling(x[:, :2]))))), X)
        assert "Doubling" in message and "numpy.linalg.inv" in message
        return
    check(CLASSES[cls], OPERATIONS[operation], second=operation in ("a + a", "np.sum", "exp", "std", "in place"))


# -- matrices --------------------------------------------------------------------------------------------------------------

MATRICES = {
    "abs(m) * m": lambda m: abs(m) * m,
    "exp(m) * m": lambda m: np.exp(m) * m,
    "m * m.T": lambda m: m * m.T,
    "m ** 2": lambda m: m**2,
    "m.I": lambda m: m.I,
    "m.A": lambda m: m.A * m.A,
    "sum": lambda m: m.sum(axis=0),
    "np.sum": lambda m: np.sum(m, axis=1),
    "mean": lambda m: m.mean(),
    "row": lambda m: m[0] * m[:, 1],
    "column written": lambda m: column_written(m * 1.0),
    "ravel": lambda m: m.ravel(),
    "reshape": lambda m: m.reshape(1, 4),
    "trace": lambda m: m.trace(),
    "solve": lambda m: np.linalg.solve(m, m[:, 0]),
    "np.multiply": lambda m: np.multiply(m, m),
    "bmat": lambda m: np.bmat([[m, m], [m.T, m]]),
}


def column_written(m):
    m[:, 1] = m[:, 0]
    m[0] = 2.0 * m[1]
    return m


@pytest.mark.parametrize("operation", MATRICES)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_stays_a_matrix(operation):
    check(np.asmatrix, MATRICES[operation], np.array([[1.3, 0.2], [0.4, -1.9]]), second=operation[0] == "m")


# -- masked arrays ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", "sum mean prod std var max min cumsum median average ptp ravel transpose reshape sort clip".split()
)
@pytest.mark.parametrize("where", ["np", "np.ma", "method"])
@pytest.mark.filterwarnings("ignore")
def test_masked_elements_do_not_leak(where, function):
    more = {"reshape": ((3, 2),), "clip": (0.5, 2.0)}.get(function, ())
    if where == "method" and function in ("median", "average", "sort"):
        function = "mean"

    def operation(m):
        if where == "method":
            return getattr(m, function)(*more)
        return getattr(np if where == "np" else np.ma, function)(m, *more)

    check(lambda x: np.ma.array(x, mask=HALF), operation)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_what_the_mask_hides_has_derivative_zero_also_where_it_is_a_pole(mode):
    x = np.array([0.0, 4.0, -1.0, 1.0])

    def derivative(f):
        if mode == "reverse":
            return grad(f)(x)
        return np.array([jvp(f, (x,), (e,))[1] for e in np.eye(4)])

    def masked(x):
        return np.ma.masked_where(x <= 0.0, x)

    with np.errstate(all="ignore"):
        assert derivative(lambda x: (1.0 / masked(x)).sum()).tolist() == [0.0, -1 / 16, 0.0, -1.0]
        assert derivative(lambda x: np.ma.log(x).sum()).tolist() == [0.0, 0.25, 0.0, 1.0]
        assert derivative(lambda x: np.log(masked(x)).sum()).tolist() == [0.0, 0.25, 0.0, 1.0]
        assert derivative(lambda x: np.ma.sqrt(masked(x)).sum()).tolist() == [0.0, 0.25, 0.0, 0.5]
        assert derivative(lambda x: (masked(x) / masked(x - 1.0)).sum())[1:3] == pytest.approx([-1 / 9, 0.0])
        assert derivative(lambda x: np.ma.divide(2.0, x).sum()).tolist() == [0.0, -1 / 8, -2.0, -2.0]
        assert derivative(lambda x: (masked(x) ** 0.5).sum()).tolist() == [0.0, 0.25, 0.0, 0.5]


def test_the_numbers_under_a_mask_are_ordinary_numbers_for_those_who_ask_for_them():
    def f(x):
        return np.ma.array(x * x, mask=[True, False])

    x = np.array([5.0, 7.0])
    assert grad(lambda x: f(x).data.sum())(x).tolist() == [10.0, 14.0]
    assert grad(lambda x: f(x).filled(1.0).sum())(x).tolist() == [0.0, 14.0]
    assert grad(lambda x: (f(x) * 3.0).data[0])(x).tolist() == [10.0, 0.0]  # NumPy keeps the left operand there


def test_a_masked_argument_has_a_plain_gradient_with_zeros_under_the_mask():
    m = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    m_bar = grad(lambda m: (m * m).sum())(m)
    assert type(m_bar) is np.ndarray and m_bar.tolist() == [2.0, 0.0, 6.0]
    assert grad(np.mean)(m).tolist() == [0.5, 0.0, 0.5]
    assert m.mask.tolist() == [False, True, False] and m.data.tolist() == [1.0, 2.0, 3.0]
    y, y_dot = jvp(lambda m: m * m, (m,), (np.ones(3),))
    assert type(y) is np.ma.MaskedArray and y.mask.tolist() == m.mask.tolist()
    assert np.asarray(y_dot)[[0, 2]].tolist() == [2.0, 6.0]


# -- arguments ----------------------------------------------------------------------------------------------------------------


def test_an_argument_keeps_its_class_and_attributes_and_is_given_back():
    a = Tagged([1.0, 2.0], "metres")
    seen = []

    def f(a):
        seen.append((type(a), a.tag))
        return (a * a).sum()

    y, a_bar = value_and_grad(f)(a)
    assert seen == [(Tagged, "metres")] and type(a_bar) is np.ndarray and a_bar.tolist() == [2.0, 4.0]
    assert type(y) is type((a * a).sum()) and y == 5.0
    same, pullback = vjp(lambda a: a, a)
    assert same is a and type(pullback(np.ones(2))[0]) is np.ndarray
    assert grad(lambda a: 3.0)(a).tolist() == [0.0, 0.0] and type(grad(lambda a: 3.0)(a)) is np.ndarray


def test_what_f_does_to_an_argument_is_done():
    def f(a):
        a *= 2.0
        a.tag = "seen"
        return a.sum()

    for derivative in (grad(f), lambda a: jvp(f, (a,), (np.ones(2),))):
        a = Tagged([1.0, 2.0])
        derivative(a)
        assert a.tolist() == [2.0, 4.0] and a.tag == "seen" and type(a) is Tagged

    def hides(m):
        y = m.sum()
        m[0] = np.ma.masked
        return y + m.sum()

    m = np.ma.array([1.0, 2.0], mask=[False, False])
    assert grad(hides)(m).tolist() == [1.0, 2.0]
    assert m.mask.tolist() == [True, False] and m.data.tolist() == [1.0, 2.0]


def test_an_attribute_that_depends_on_the_inputs_keeps_its_derivative():
    class Scaled(np.ndarray):
        def __array_finalize__(self, obj):
            self.scale = getattr(obj, "scale", 1.0)

        def total(self):
            return float(self.sum()) * self.scale

    def f(x):
        a = np.array([x, 2.0]).view(Scaled)
        a.scale = x * x
        return (a * 3.0)[::-1].reshape(1, 2).total()

    assert grad(f)(1.5) == pytest.approx(3.0 * (3 * 1.5**2 + 4 * 1.5))
    assert jvp(f, (1.5,), (1.0,))[1] == pytest.approx(3.0 * (3 * 1.5**2 + 4 * 1.5))


def test_c_code_gets_no_array_with_an_attribute_that_depends_on_the_inputs():
    import pickle

    def f(x):
        a = Tagged(np.ones(2))
        a.tag = x * 2.0
        return pickle.loads(pickle.dumps(a)).sum() * x

    assert "pickle" in refused(grad(f), 3.0)
    assert grad(lambda x: len(pickle.dumps(Tagged(np.ones(2)))) * 0.0 + x)(3.0) == 1.0


def test_python_code_of_a_class_runs_as_often_as_in_a_plain_call():
    class Counting(np.ndarray):
        entered: list = []

        def __array_wrap__(self, array, context=None, return_scalar=False):
            self.entered.append("wrap")
            return super().__array_wrap__(array, context)

        def __array_function__(self, func, types, args, kwargs):
            self.entered.append(func.__name__)
            return super().__array_function__(func, types, args, kwargs)

        def __mul__(self, other):
            self.entered.append("mul")
            return super().__mul__(other)

        def __rmul__(self, other):
            self.entered.append("rmul")
            return super().__rmul__(other)

    def f(x):
        a = x.view(Counting)
        b = 2.0 * a * a + np.sqrt(a)
        return float(np.sum(np.concatenate([b, a])))

    f(np.array([1.0, 4.0]))
    plain, Counting.entered[:] = list(Counting.entered), []
    assert grad(f)(np.array([1.0, 4.0])) == pytest.approx([5.5, 17.25])
    assert Counting.entered == plain


def test_super_and_mixed_classes():
    class Low(np.ndarray):
        __array_priority__ = 1.0

    class High(np.ndarray):
        __array_priority__ = 2.0

        def __rsub__(self, other):
            return 10.0 * (np.asarray(other) - np.asarray(self)).view(High)

    def f(x):
        low, high = x.view(Low), (x * x).view(High)
        results = (low + high, high + low, np.add(low, high), np.hypot(high, low), low - x, x - high)
        assert [type(y) for y in results] == [High, High, High, High, Low, High]
        return float(sum(np.sum(np.asarray(y)) for y in results))

    x = np.array([0.6, 1.4])
    f(x)
    h = 1e-6
    slopes = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(2)]
    assert grad(f)(x) == pytest.approx(slopes, rel=1e-6)


def test_exceptions_of_a_class_are_those_of_the_plain_call():
    class Strict(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            if ufunc is not np.multiply:
                return NotImplemented
            plain = [x.view(np.ndarray) if isinstance(x, Strict) else x for x in inputs]
            return getattr(ufunc, method)(*plain, **options).view(Strict)

    def f(x):
        a = x.view(Strict)
        try:
            a + 1.0
        except TypeError:
            a = a * 2.0
        return float(np.asarray(a).sum())

    assert grad(f)(np.array([1.0, 2.0])).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="operand type"):
        grad(lambda x: float(np.asarray(np.exp(x.view(Strict))).sum()))(np.ones(2))
    with pytest.raises(ValueError, match="broadcast"):
        grad(lambda x: (Tagged(x) + np.ones(7)).sum())(np.ones(2))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_other_dtypes_and_shapes(dtype):
    for x in (np.ones((0, 3), dtype), np.array(2.0, dtype), np.arange(6.0).astype(dtype)[::-2]):

        def f(x):
            a = Tagged(x)
            b = np.ravel(a * a)
            assert type(b) is Tagged and b.tag == "m" and b.dtype == dtype
            return np.real(np.asarray(b).sum())

        assert np.array_equal(grad(f)(x), 2 * x.conj()) or np.array_equal(grad(f)(x), 2 * x)


def test_second_derivatives_and_threads():
    def f(x):
        a = Methods(x)
        return float(np.sum(np.exp(a) * a)) + float(np.mean(a * a * a))

    x = np.array([0.3, 0.7])
    curved = plaingrad.hessian(f)(x)
    wanted = np.diag(2.0 * (2.0 + x) * np.exp(x) + 5.0 * 6.0 * x / 2)
    assert curved == pytest.approx(wanted)
    found = []
    threads = [threading.Thread(target=lambda: found.append(plaingrad.hessian(f)(x))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(each, curved) for each in found) and len(found) == 4


def test_a_vectorized_function_is_called_as_often_as_in_a_plain_call():
    calls = []

    def square(v):
        calls.append(1)
        return v * v

    x = np.array([1.0, 2.0, 3.0])
    np.vectorize(square)(Tagged(x))
    plain, calls[:] = len(calls), []

    def f(x):
        z = np.vectorize(square)(Tagged(x))
        assert type(z) is Tagged and z.tag == "m"
        return z.sum()

    assert grad(f)(x).tolist() == [2.0, 4.0, 6.0] and len(calls) == plain
    assert "Doubling" in refused(grad(lambda x: np.vectorize(square)(Doubling(x)).sum()), x)


def test_a_function_without_a_rule_asks_the_class_first():
    class Box:
        """No array, but it stands for one."""

        def __init__(self, x):
            self.x = x

        def __array_function__(self, func, types, args, kwargs):
            return Box(func(*[a.x if isinstance(a, Box) else a for a in args], **kwargs) * 2.0)

    def f(x):
        y = np.trapezoid(Box(x)) if hasattr(np, "trapezoid") else np.trapz(Box(x))
        assert type(y) is Box
        return float(y.x)

    assert grad(f)(np.array([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 1.0]


def test_math_functions_and_conversions_ask_the_class():
    class Celsius(np.ndarray):
        def __float__(self):
            return 1.8 * np.asarray(self).item() + 32.0

    def f(x):
        a = np.asarray(x).reshape(()).view(Celsius)
        return math.log(a) + float(a)

    assert f(np.array(10.0)) == math.log(50.0) + 50.0
    assert grad(f)(np.array(10.0)) == pytest.approx(1.8 / 50.0 + 1.8)


def test_text_of_an_array_of_a_class_is_that_of_the_plain_call():
    m = np.ma.array([1.25, 2.5], mask=[True, False])
    texts = []

    def f(x):
        texts.append(str(np.ma.array(x, mask=[True, False])) + repr(Tagged(x)))
        return x.sum()

    f(np.array([1.25, 2.5]))
    grad(f)(np.array([1.25, 2.5]))
    assert texts[0] == texts[1] and str(m) in texts[0]


@pytest.mark.skipif("numba" not in sys.modules and not __import__("importlib").util.find_spec("numba"), reason="no numba")
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_native_code_leaves_arrays_of_classes_alone():
    import numba

    @numba.njit
    def total(x):
        s = 0.0
        for k in range(x.size):
            s += x[k] * x[k]
        return s

    m = np.ma.array([1.0, 2.0], mask=[False, True])
    @numba.njit
    def squares(x):
        return (x * x).sum()

    for make in (np.asmatrix, Doubling):  # to Numba they are plain memory
        x = X[:, :2] if make is np.asmatrix else X
        wanted = squares(make(x))
        assert value_and_grad(lambda x: squares(make(x)))(x)[0] == wanted == pytest.approx((x * x).sum())
        assert grad(lambda x: squares(make(x)))(x) == pytest.approx(2 * x)
        assert value_and_grad(squares)(make(x))[0] == wanted and grad(squares)(make(x)) == pytest.approx(2 * x)

    message = refused(grad(total, tier="native"), m)
    assert "MaskedArray" in message
    assert grad(lambda x: total(np.asarray(x)))(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]

    factors = np.ma.array([1.0, 2.0], mask=[False, True])

    def weighted(x):
        return (x * factors).sum()

    assert grad(weighted)(np.array([3.0, 4.0])).tolist() == [1.0, 0.0]
    assert "MaskedArray" in refused(grad(weighted, tier="native"), np.array([3.0, 4.0]))


class Declining(np.ndarray):
    """It leaves every public function to the others."""

    def __array_function__(self, func, types, args, kwargs):
        return NotImplemented


class Plainly(np.ndarray):
    """It has the `__array_function__` of ndarray."""


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.dot(x, x.view(Declining)),
        lambda x: np.dot(x.view(Declining), x.view(Plainly)),
        lambda x: np.dot(x.view(Plainly), x.view(Tripling)),
        lambda x: np.dot(x.view(Tripling), x.view(Plainly)),
        lambda x: np.dot(x, x.view(Tripling)),
        lambda x: np.concatenate([x.view(Declining), x]).view(np.ndarray).sum(),
        lambda x: (np.where(x > 1.5, x.view(Declining), 2.0 * x) * x).view(np.ndarray).sum(),
    ],
)
def test_the_array_function_of_ndarray_has_its_turn_among_those_of_the_classes(f):
    x, step = np.array([0.5, 2.0, 9.0]), 1e-6
    value, found = value_and_grad(f)(x)
    assert value == f(x)
    slopes = [(f(x + step * e) - f(x - step * e)) / (2.0 * step) for e in np.eye(3)]
    assert found == pytest.approx(slopes, rel=1e-6)
    assert jvp(f, (x,), (np.ones(3),))[1] == pytest.approx(sum(slopes), rel=1e-6)


def test_where_every_class_declines_the_error_is_that_of_numpy():
    def f(x):
        return np.dot(x.view(Declining), x.view(Declining))

    x = np.ones(3)
    with pytest.raises(TypeError) as plain:
        f(x)
    with pytest.raises(TypeError) as found:
        grad(f)(x)
    assert str(found.value).splitlines()[0] == str(plain.value)


def test_i0_of_an_array_with_a_unit():
    unyt = pytest.importorskip("unyt")
    x = np.array([0.5, 2.0, 9.0])

    def f(x):
        z = np.i0(unyt.unyt_array(x, ""))
        assert type(z) is unyt.unyt_array
        return z.view(np.ndarray).sum()

    slopes = grad(lambda x: np.i0(x).sum())(x)
    assert slopes[0] == pytest.approx(0.2578943053908963, rel=1e-7)  # I_1(1/2)
    assert grad(f)(x) == pytest.approx(slopes, rel=1e-7)


# -- what NumPy refuses for a class ------------------------------------------------------------------------------------


class Picky(Tagged):
    """Takes no arrays of more than two axes."""

    def __array_finalize__(self, obj):
        if self.ndim > 2:
            raise ValueError("Picky has two axes")
        super().__array_finalize__(obj)


TOO_MANY_AXES = {
    "dstack": lambda m: np.dstack([m, m]),
    "stack": lambda m: np.stack([m, m], -1),
    "stack first": lambda m: np.stack([m, m]),
    "sum": lambda m: m + np.ones((3, 2, 2)),
    "matmul": lambda m: np.matmul(m, np.ones((3, 2, 2))),
    "take": lambda m: np.take(m, [[0, 1], [1, 0]], axis=0),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("make", [np.asmatrix, lambda x: Picky(x, "p")], ids=["matrix", "Picky"])
@pytest.mark.parametrize("operation", TOO_MANY_AXES.values(), ids=TOO_MANY_AXES)
def test_an_error_of_the_class_is_that_of_the_plain_call(make, operation):
    constant = make(np.ones((2, 2)))
    if make is not np.asmatrix and operation in [TOO_MANY_AXES[name] for name in ("dstack", "stack", "stack first")]:
        pytest.skip("NumPy's Python code makes views with more axes on the way")

    def outcome(f, *args):
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - which one it is, is compared
            f(*args)
        return type(raised.value), str(raised.value)

    plain = outcome(operation, constant)
    programs = [lambda x: np.sum(operation(x * constant)), lambda x: x * np.sum(operation(constant))]
    for program in programs:
        for slope in (grad, lambda f: lambda x: jvp(f, (x,), (1.0,)), lambda f: grad(grad(f))):
            assert outcome(slope(program), 2.0) == plain
