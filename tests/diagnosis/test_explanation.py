"""`explain` names the line, the operation and the element where something is not finite, and where chains are cut."""

import dataclasses
import math
import statistics
import threading

import numpy as np
import pytest

import plaingrad
from plaingrad import explain
from plaingrad.diagnosis import Explanation

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def line_of(f, text):
    """The number of the line of `f` that contains `text`."""
    import inspect

    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, line in enumerate(lines) if text in line)


def check(found, what, f, text, becomes, name):
    event = next(event for event in found.events if event.what == what)
    assert event.place.file == __file__
    assert event.place.line == line_of(f, text)
    assert event.place.expression in text or text in event.place.expression
    assert event.bad.word == becomes
    assert event.step.name == name
    return event


def test_zero_over_zero_is_a_value_that_becomes_nan():
    def f(x):
        y = x - x[0]
        z = y / y
        return z.sum()

    found = explain(f, np.array([1.0, 2.0]))
    event = check(found, "value", f, "y / y", "nan", "/")
    assert event.bad.index == (0,) and event.bad.count == 1 and found.first is event
    assert "0, 0" in event.operands


def test_the_slope_of_a_root_at_zero_is_infinite():
    def f(x):
        return 3.0 * math.sqrt(x)

    event = check(explain(f, 0.0), "cotangent", f, "math.sqrt(x)", "inf", "math.sqrt")
    assert (event.incoming, event.slope) == (3.0, math.inf)


def test_zero_times_infinity_in_a_cotangent():
    def f(x):
        r = math.sqrt(x)
        return r * 0.0 + x

    found = explain(f, 0.0)
    event = check(found, "cotangent", f, "math.sqrt(x)", "nan", "math.sqrt")
    assert event.incoming == 0 and "product with 0" in found.hint


@pytest.mark.parametrize("name, index", [("log", 1), ("sqrt", 1)])
def test_a_where_that_hides_an_infinite_slope_is_explained(name, index):
    function = getattr(np, name)

    def f(x):
        y = function(x)
        return np.where(x > 0.0, y, 0.0).sum()

    x = np.array([1.0, 0.0, 2.0])
    found = explain(f, x)
    event = check(found, "cotangent", f, "function(x)", "nan", f"numpy.{name}")
    assert event.bad.index == (index,) and event.incoming == 0 and event.slope == np.inf
    assert "double where" in found.hint and "numpy.where" in found.hint

    def mended(x):
        return np.where(x > 0.0, function(np.where(x > 0.0, x, 1.0)), 0.0).sum()

    assert explain(mended, x).events == []


def test_overflow_in_a_value_and_in_a_cotangent():
    def f(x):
        y = np.exp(x)
        return 1.0 / y

    check(explain(f, 1000.0), "value", f, "np.exp(x)", "inf", "numpy.exp")

    def g(x):
        y = x * 1e200
        return y * 1e200

    found = explain(g, 1e-250)
    event = check(found, "cotangent", g, "x * 1e200", "inf", "*")
    assert event.incoming == 1e200 and event.slope == 1e200


def test_which_element_of_a_matrix():
    def f(x):
        return np.log(x * np.ones((2, 3))).sum()

    found = explain(f, np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 1.0]]))
    event = check(found, "value", f, "np.log(x * np.ones((2, 3)))", "-inf", "numpy.log")
    assert event.bad.index == (0, 2) and event.bad.count == 2 and event.bad.size == 6


def test_an_infinite_constant_is_no_event():
    def f(x):
        best = math.inf
        for y in (x, x * x):
            best = min(best, y)
        return best

    found = explain(f, 0.5)
    assert found.events == [] and found.value == 0.25
    assert "finite" in repr(found)


def test_in_forward_mode_the_tangent_is_named():
    def f(x):
        return np.sqrt(x).sum()

    event = check(explain(f, np.array([1.0, 0.0]), mode="forward"), "tangent", f, "np.sqrt(x)", "inf", "numpy.sqrt")
    assert event.bad.index == (1,)


@dataclasses.dataclass
class Model:
    scale: float
    names: list

    def curve(self, x):
        return math.sqrt(self.scale) * x


def parts(model, xs):
    for x in xs:
        yield model.curve(x)


def test_methods_generators_and_objects():
    def f(model, xs):
        return sum(parts(model, xs))

    found = explain(f, Model(0.0, ["a"]), [1.0, 2.0])
    event = check(found, "cotangent", Model.curve, "math.sqrt(self.scale)", "inf", "math.sqrt")
    assert event.place.function == "curve"
    paths = {one.path: one.influence for one in found.inputs}
    assert paths == {"model.scale": "some", "xs[0]": "zero", "xs[1]": "zero"}


def test_in_library_code_the_users_line_and_that_of_the_library_are_named():
    def f(x):
        return statistics.geometric_mean([x, 0.25 * x]) * statistics.fmean([math.sqrt(x - 1.0), x])

    found = explain(f, 1.0)
    event = next(event for event in found.events if event.what == "cotangent")
    assert event.place.line == line_of(f, "math.sqrt(x - 1.0)")

    def g(x):
        return np.linalg.norm(np.array([x * 0.0, 0.0])) + np.log1p(-x)

    found = explain(g, 1.0)
    assert found.first.place.line == line_of(g, "np.log1p(-x)")


class _Library:
    """A function as if it were installed."""

    code = "import math\ndef root(x):\n    y = math.sqrt(x)\n    return y\n"
    space = {"__name__": "some_library"}
    exec(compile(code, "/somewhere/site-packages/some_library/roots.py", "exec"), space)
    root = staticmethod(space["root"])


def test_a_line_of_an_installed_package_is_named_behind_the_users():
    def f(x):
        return 2.0 * _Library.root(x)

    place = explain(f, 0.0).place
    assert (place.file, place.line) == (__file__, line_of(f, "_Library.root(x)"))
    assert place.inside.short == "some_library/roots.py" and place.inside.line == 3


def test_where_chains_are_cut():
    def f(a, b, c, d, e, g, h):
        k = int(a)
        text = f"{c}"
        size = round(d)
        if b > 1.0:
            k = k + 1
        fixed = plaingrad.stop_gradient(e)
        w = math.exp(g)
        return k * fixed + len(text) + size + h

    found = explain(f, 3.2, 2.0, 1.5, 4.0, 5.0, 0.1, 7.0)
    cuts = {one.path: one for one in found.inputs}
    assert [path for path, one in cuts.items() if one.influence == "some"] == ["h"]
    assert all(cuts[path].influence == "none" for path in "abcdeg")
    for path, text, why in (
        ("a", "int(a)", "whole number"),
        ("b", "b > 1.0", "branch"),
        ("c", '"{c}"', "text"),
        ("d", "round(d)", "whole number"),
        ("e", "stop_gradient(e)", "stop_gradient"),
    ):
        cut = cuts[path].cuts[0]
        assert cut.place.line == line_of(f, text) and why in cut.why, (path, cut)
    assert cuts["g"].cuts == [] and cuts["g"].last.line == line_of(f, "math.exp(g)")


def test_an_input_that_is_not_used_and_one_that_is_only_chosen_against():
    def f(a, b, c):
        return max(a, b)

    found = {one.path: one for one in explain(f, 1.0, 2.0, 3.0).inputs}
    assert found["b"].influence == "some"
    assert found["c"].unused and found["a"].influence == "none"


def test_zero_slopes_are_told_from_cuts():
    def f(x, y):
        return np.maximum(x, 5.0) + y * 0.0

    found = {one.path: one for one in explain(f, 1.0, 2.0).inputs}
    assert found["x"].influence == found["y"].influence == "zero"
    assert "numpy.maximum" in found["x"].cuts[0].why
    assert found["y"].cuts[0].place.expression == "y * 0.0"


def test_what_cancels_and_what_is_written_over_is_not_called_a_zero_slope():
    def written_over(x, y):
        a = np.zeros(2)
        a[0] = x
        a[0] = y
        return a.sum()

    (one,) = explain(lambda x: x - x, 2.0).inputs
    assert one.influence == "zero" and "cancels" in one.cuts[0].why
    x = explain(written_over, 1.0, 2.0).inputs[0]
    assert x.influence == "zero" and "written over" in x.cuts[0].why


def test_comparisons_of_arrays_and_indices():
    def f(x, table):
        k = np.argmax(x)
        return table[k] ** 2

    found = {one.path: one for one in explain(f, np.array([1.0, 3.0]), np.array([2.0, 5.0])).inputs}
    assert found["table"].influence == "some"
    assert found["x"].influence == "none" and "argmax" in found["x"].cuts[0].why


def test_a_cut_behind_further_operations_is_found():
    def f(x):
        y = x * 2.0 + 1.0
        z = math.floor(y)
        return z * 1.0

    (one,) = explain(f, 1.3).inputs
    assert one.influence == "none" and one.cuts[0].place.line == line_of(f, "math.floor(y)")


def test_warnings_of_the_reverse_pass_can_be_asked_for():
    def f(x):
        return np.sqrt(x).sum()

    assert any("divide by zero" in text and "np.sqrt(x)" in text for text in explain(f, np.array([0.0])).warnings)


def test_value_and_gradient_are_those_of_grad_also_with_writes_and_checkpoints():
    def f(p, x):
        y = x * p["a"]
        y[1:] += np.sin(y[:-1])
        y *= 2.0
        for v in list(x):
            p = {"a": p["a"] * v, "b": p["b"]}
        return (y @ y) + p["a"] * plaingrad.checkpoint(lambda b: b * math.exp(b), p["b"])

    args = {"a": 1.5, "b": 0.3}, np.array([0.5, 1.0, 2.0])
    value, gradient = plaingrad.value_and_grad(f, (0, 1))(*args)
    found = explain(f, *args)
    assert found.value == value
    np.testing.assert_allclose(found.gradients[1], gradient[1], rtol=1e-13)
    assert found.gradients[0] == pytest.approx(gradient[0], rel=1e-13)
    assert found.events == [] and found.without_influence == []


def test_arguments_are_changed_as_a_plain_call_changes_them():
    def f(x, kept):
        x *= 2.0
        kept.append(x.sum())
        return x @ x

    x, kept = np.array([1.0, 2.0]), []
    explain(f, x, kept)
    assert x.tolist() == [2.0, 4.0] and kept == [6.0]


def test_exceptions_are_those_of_the_function():
    def f(x):
        return math.log(x - 1.0)

    with pytest.raises(ValueError) as caught:
        explain(f, 1.0)
    assert caught.traceback[-1].frame.code.path is not None


def test_a_derivative_inside_is_looked_at_from_outside():
    def f(x):
        inner = plaingrad.grad(lambda t: t * math.sqrt(t))(x)
        return inner * math.sqrt(x)

    value = explain(f, 4.0)
    assert value.events == []
    assert value.gradients[0] == pytest.approx(1.5)
    found = explain(plaingrad.grad(lambda x: math.sqrt(x) * x * x * x), 0.0)
    assert isinstance(found, Explanation) and found.events  # 0 times the slope of the root


def test_several_threads_at_once():
    def f(x):
        return math.sqrt(x) * 2.0

    def g(x):
        return math.exp(x)

    found = {}

    def work(k):
        found[k] = [explain(f if k % 2 else g, 0.0) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, several in found.items():
        assert [len(one.events) for one in several] == [k % 2] * 3


def test_what_it_prints_and_gives():
    def f(x, n):
        return math.sqrt(x) * round(n)

    found = explain(f, 0.0, 2.5)
    text = repr(found)
    assert "math.sqrt(x)" in text and "slope inf" in text and "round(n)" in text
    assert "math.sqrt(x)" in found._repr_html_()
    data = found.as_json()
    assert data["events"][0]["place"]["line"] == line_of(f, "math.sqrt(x)")
    assert data["inputs"][1]["cuts"][0]["place"]["expression"] == "round(n)"


def test_it_refuses_what_it_cannot_explain():
    with pytest.raises(plaingrad.ArgumentError):
        explain(math.sin, "text")
    with pytest.raises(plaingrad.ArgumentError, match="inside of a derivative"):
        plaingrad.grad(lambda x: explain(math.sin, x).value)(1.0)


def test_what_was_written_over_is_not_shown_as_an_operand():
    def f(x):
        a = x * 1.0
        a /= x - x
        return a.sum()

    event = check(explain(f, np.ones(2)), "value", f, "a /= x - x", "inf", "/")
    assert event.operands.startswith("what was there before")


def test_parts_of_a_definition_have_the_name_of_the_function_that_was_called():
    (one,) = explain(lambda x: np.linalg.norm(x - x), np.ones(3)).inputs
    assert one.influence == "zero" and "numpy.linalg.norm" in one.cuts[0].why


def test_functions_compiled_by_numba_are_looked_at_as_python():
    numba = pytest.importorskip("numba")

    @numba.njit
    def f(x):
        return math.sqrt(x) * 2.0

    found = explain(f, 0.0)
    check(found, "cotangent", f.py_func, "math.sqrt(x)", "inf", "math.sqrt")
    assert any("Numba" in note for note in found.notes)
    found = explain(lambda x: f(x) + x, 0.0)
    check(found, "cotangent", f.py_func, "math.sqrt(x)", "inf", "math.sqrt")


def test_awaited_code_and_recursion():
    import asyncio

    async def inner(x):
        return math.sqrt(x)

    def f(n, x):
        return asyncio.run(inner(x)) if n == 0 else f(n - 1, x * 2.0)

    event = check(explain(f, 2, 0.0), "cotangent", inner, "math.sqrt(x)", "inf", "math.sqrt")
    assert event.incoming == 1.0


def test_inputs_without_influence_for_one_reason_are_told_together():
    def lowest(xs):
        return min(xs) * 1.0

    text = repr(plaingrad.explain(lowest, [1.0, *range(2, 200), 5.0, 6.0, 7.0]))
    assert "xs[199] to xs[201], 3 inputs: have no influence on the result" in text and len(text.splitlines()) < 6
    found = plaingrad.explain(lambda x: np.histogram(x, bins=4)[0].sum() * 1.0, np.array([0.1, 0.5, 0.9]))
    lines = repr(found).splitlines()
    assert len(set(lines)) == len(lines)  # no reason twice


def test_zero_times_the_logarithm_of_zero_has_a_hint():
    def entropy(s):
        p = np.exp(np.where(np.arange(4) < 2, s, -np.inf))
        p = p / p.sum()
        return -(p * np.log(p)).sum()

    with np.errstate(all="ignore"):
        found = plaingrad.explain(entropy, np.array([0.1, 0.2, 0.3, 0.4]))
    assert "scipy.special.xlogy" in found.hint and "at [2] and 1 other of 4" in repr(found)


class Converted(np.ndarray):
    """An array that looks at its operands as what they are at each operation, as quantities with units do."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        whole = [x[...] if isinstance(x, Converted) else x for x in inputs]
        bare = [x.view(np.ndarray) if isinstance(x, Converted) else x for x in whole]
        return getattr(ufunc, method)(*bare, **kwargs)


def test_looking_at_a_value_does_not_enter_the_code_of_its_class():
    found = explain(lambda x: np.sum(np.sqrt(x.view(Converted) - 1.0)), np.array([2.0, 1.0]))
    event = next(event for event in found.events if event.what == "cotangent")
    assert (event.bad.word, event.bad.index, event.incoming, event.slope) == ("inf", (1,), 1.0, math.inf)


def test_in_compiled_functions_what_raises_in_python_is_infinite_or_nan():
    numba = pytest.importorskip("numba")

    @numba.njit
    def f(a):
        s = 0.0
        for i in range(a.size):
            s += math.log(a[i])
        return s

    a = np.arange(3.0)
    for mode in ("reverse", "forward"):
        assert explain(f, a, mode=mode).value == f(a) == -np.inf
    check(explain(f, a), "value", f.py_func, "math.log(a[i])", "-inf", "math.log")
    check(explain(lambda a: f(a) * 2.0, a), "cotangent", f.py_func, "math.log(a[i])", "inf", "math.log")
    with pytest.raises(plaingrad.NotFiniteError, match="-inf in `math.log`"):
        plaingrad.grad(f, debug=True)(a)
    power = numba.njit(lambda x: x**-2.0)
    assert explain(power, 0.0).value == power(0.0) == np.inf
    with pytest.raises(ZeroDivisionError):
        explain(numba.njit(lambda x: 1.0 / x), 0.0)
    with pytest.raises(ValueError):
        explain(lambda x: math.log(x), 0.0)


def test_only_the_arguments_that_are_asked_for_are_explained():
    assert not explain(lambda x, n: x * n, 2.0, 0).without_influence[1:]
    assert [one.path for one in explain(lambda x, n: x * n, 2.0, 0).inputs] == ["x"]
    assert [one.path for one in explain(lambda x, y: x * 2.0, 2.0, 3.0, argnums=0).inputs] == ["x"]
    assert [one.path for one in explain(lambda x, n: x * n, 2.0, 3, argnums=(0, 1)).inputs] == ["x", "n"]
