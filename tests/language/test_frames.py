"""Programs that look at their own frames: `locals`, `vars`, `dir`, `globals`, `sys._getframe`, `inspect`, warnings.

PYTEST_DONT_REWRITE: asserts that pytest rewrites have locals of their own.
"""

import inspect
import os
import sys
import traceback
import warnings

import pytest
from cases_b import check

import plaingrad

LEVEL = 2.0


def test_locals_has_the_plain_names_and_active_values():
    def f(x, k=2.0):
        y = x * x
        names = sorted(locals())
        assert names == ["k", "x", "y"], names
        here = locals()
        return here["y"] * here["x"] * here["k"]

    check(f, 1.5, 6 * 1.5**2)


def test_vars_and_dir_without_arguments_are_those_of_the_caller():
    def f(x):
        y = x * 3.0
        assert dir() == ["x", "y"]
        assert sorted(vars()) == ["x", "y"]
        return vars()["y"] * x

    check(f, 1.5, 9.0)


def test_vars_and_dir_of_objects():
    class Box:
        def __init__(self, v):
            self.v = v
            self.w = v * v

        def __dir__(self):
            return ["w", "v"]

    def f(x):
        box = Box(x)
        vars(box)["u"] = x * 10.0
        box.__dict__.update(t=x * 100.0)
        return sum(getattr(box, name) for name in dir(box)) + box.u + box.t

    check(f, 1.5, 1 + 3.0 + 110.0)


def test_locals_in_nested_functions_comprehensions_and_class_bodies():
    def f(x):
        y = x * 2.0

        def g(z):
            w = z * y
            return sorted(locals()), w

        names, w = g(x)
        assert names == ["w", "y", "z"]

        class Model:
            k = x * 5.0
            here = sorted(n for n in locals() if not n.startswith("__"))

        assert Model.here == ["k"]
        return w + Model.k + sum(v for v in dict(locals()).values() if isinstance(v, float)) * x

    # w = 2xx, k = 5x, floats in locals(): x, y = 2x, w = 2xx
    x = 1.5
    check(f, x, 4 * x + 5 + 6 * x + 6 * x**2)


def test_format_map_of_locals_and_eval_in_locals():
    def f(x):
        y = x * x
        text = "{x:.1f} {y:.2f}".format_map(locals())
        assert text == "1.5 2.25"
        return eval("x * y", globals(), locals()) * LEVEL

    check(f, 1.5, 6 * 1.5**2)


def test_exec_into_locals_does_what_the_plain_call_does():
    def f(x):
        y = x
        space = locals()
        exec("y = x * 100.0\nz = y * x", globals(), space)
        return y + space["z"]

    check(f, 1.5, 1 + 200 * 1.5)


def test_globals_is_the_users_and_can_be_written():
    def f(x):
        globals()["LEFT_BY_F"] = x * x
        assert globals() is f.__globals__
        return LEFT_BY_F * globals()["LEVEL"]  # noqa: F821

    check(f, 1.5, 4 * 1.5, state=lambda: globals()["LEFT_BY_F"])
    del globals()["LEFT_BY_F"]


def test_getframe_reads_active_values_of_the_caller():
    def helper():
        frame = sys._getframe(1)
        assert frame.f_code.co_name == "f"
        assert frame.f_code.co_filename == __file__
        assert frame.f_globals is globals()
        return frame.f_locals["y"] * frame.f_locals["x"]

    def f(x):
        y = x * x
        return helper() + y

    check(f, 1.5, 3 * 1.5**2 + 2 * 1.5)


def test_getframe_of_itself_names_lines_and_arguments():
    def f(x, k=3.0):
        frame = sys._getframe()
        code = frame.f_code
        assert code.co_name == "f" and code.co_argcount == 2
        assert code.co_varnames[:2] == ("x", "k")
        assert code.co_firstlineno < frame.f_lineno
        assert sorted(frame.f_locals) == ["code", "frame", "k", "x"]
        frame = None
        return x * k

    check(f, 1.5, 3.0)


def test_inspect_stack_and_currentframe_show_the_users_functions_in_order():
    def inner(x):
        entries = inspect.stack()[:3]
        names = [entry.function for entry in entries]
        lines = [entry.lineno for entry in entries]
        back = inspect.currentframe().f_back
        return names, lines, back.f_locals["y"] * x

    def middle(x):
        y = x * 2.0
        return inner(x * y)

    def f(x):
        names, lines, z = middle(x)
        assert names == ["inner", "middle", "f"]
        first = f.__code__.co_firstlineno
        assert lines[2] == first + 1 and lines[1] == first - 2
        return z

    check(f, 1.5, 12 * 1.5**2)


def test_inspect_signature_and_source_are_those_of_the_original():
    def f(x: float, *, k: float = 2.0) -> float:
        """Doc."""
        signature = inspect.signature(f)
        assert str(signature) == "(x: float, *, k: float = 2.0) -> float"
        assert f.__doc__ == "Doc." and f.__name__ == "f" and f.__code__.co_name == "f"
        assert inspect.getsource(f).strip().startswith("def f(x: float")
        bound = signature.bind(x, k=x)
        return bound.arguments["x"] * bound.kwargs["k"]

    check(f, 1.5, 3.0)


@pytest.mark.unchecked(reason="it counts its calls in an attribute of its own")
def test_a_function_sees_itself_as_the_same_object():
    seen = []

    def f(x):
        seen.append(f)
        assert f is seen[0] and f.__code__ is seen[0].__code__
        assert f == seen[0] and hash(f) == hash(seen[0]) and f in {seen[0]}
        f.calls = getattr(f, "calls", 0) + 1
        return x * x

    def reset():
        seen.clear()
        f.calls = 0

    check(f, 1.5, 3.0, state=lambda: f.calls, reset=reset)


def test_methods_and_types_keep_their_identity():
    class Model:
        def rate(self, x):
            return x * 2.0

    def f(x):
        model = Model()
        bound = model.rate
        assert bound.__self__ is model and bound.__func__ is Model.rate
        assert bound == model.rate and type(model) is Model and isinstance(model, Model)
        assert type(x) is float and x.__class__ is float and isinstance(x, float)
        assert callable(bound) and type(f).__name__ == "function"
        return bound(x)

    check(f, 1.5, 2.0)


def test_traceback_and_extract_stack_name_the_users_lines():
    def inner(x):
        names = [s.name for s in traceback.extract_stack()][-2:]
        assert names == ["f", "inner"]
        return x * x

    def f(x):
        return inner(x) * x

    check(f, 1.5, 3 * 1.5**2)


@pytest.mark.unchecked(reason="each call warns")
def test_a_warning_is_attributed_to_the_users_line():
    def helper(x):
        warnings.warn("careful", UserWarning, stacklevel=2)
        return x * x

    def f(x):
        warnings.warn("first", UserWarning)
        return helper(x)

    def caught(call):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            call()
        return [(str(w.message), w.filename, w.lineno) for w in record]

    plain = caught(lambda: f(1.5))
    assert caught(lambda: plaingrad.grad(f)(1.5)) == plain
    assert [os.path.basename(name) for _, name, _ in plain] == ["test_frames.py"] * 2


def test_warnings_as_errors_are_caught_by_the_program():
    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                warnings.warn("careful", RuntimeWarning, stacklevel=1)
            except RuntimeWarning:
                return x * x
        return x

    check(f, 1.5, 3.0)


@pytest.mark.unchecked(reason="calls are traced")
def test_settrace_sees_the_same_lines_of_the_users_functions():
    def g(x):
        y = x * x
        return y

    def f(x):
        total = 0.0
        for i in range(2):
            total = total + g(x) * i
        return total

    def lines(call):
        seen = []

        def trace(frame, event, argument):
            if frame.f_code.co_filename != __file__ or frame.f_code.co_name not in ("f", "g"):
                return None
            if event == "line":
                seen.append((frame.f_code.co_name, frame.f_lineno))
            return trace

        old = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(old)
        return seen

    plain = lines(lambda: f(1.5))
    assert len(plain) >= 9
    assert lines(lambda: plaingrad.grad(f)(1.5)) == plain


def test_f_back_walks_out_to_the_test_without_a_cycle():
    def f(x):
        frame, names = inspect.currentframe(), []
        while frame is not None and len(names) < 1000:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        assert "test_f_back_walks_out_to_the_test_without_a_cycle" in names
        return x * x

    check(f, 1.5, 3.0)


def test_globals_and_locals_at_module_level_code():
    space = {"x": 1.5, "seen": []}

    def f(x):
        mine = {"x": x, "seen": []}
        exec("y = x * x\nseen.append(sorted(k for k in locals() if k[0] != '_'))\nz = locals()['y'] * 2.0", mine)
        assert mine["seen"] == [["seen", "x", "y"]]
        assert globals() is not mine
        return mine["z"] + eval("locals()['x']", mine)

    assert space["x"] == 1.5
    check(f, 1.5, 7.0)


def test_callers_locals_used_by_a_template_function():
    def interpolate(template):
        here = sys._getframe(1).f_locals
        return eval(template, {}, dict(here))

    def f(x):
        rate = x * 3.0
        return interpolate("rate * x + rate")

    check(f, 1.5, 6 * 1.5 + 3)


@pytest.mark.parametrize("name", ["__name__", "__module__", "__qualname__", "__defaults__", "__closure__"])
def test_function_attributes_read_inside_are_the_originals(name):
    outside = 2.0

    def g(x, k=3.0):
        return x * k * outside

    want = getattr(g, name)

    def f(x):
        assert getattr(g, name) is want
        return g(x)

    check(f, 1.5, 6.0)


def test_breaking_into_a_frame_through_a_generator_object():
    def worker(x):
        y = x * 2.0
        yield y
        yield y * x

    def f(x):
        g = worker(x)
        first = next(g)
        inside = g.gi_frame.f_locals
        assert sorted(inside) == ["x", "y"]
        return first * inside["y"] + next(g)

    check(f, 1.5, 8 * 1.5 + 4 * 1.5)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="before, f_locals is a dictionary")
def test_locals_of_a_frame_have_the_methods_that_they_have_in_a_plain_call():
    def f(x):
        mapping = sys._getframe().f_locals
        found.append([hasattr(mapping, name) for name in ("clear", "pop", "popitem", "get", "update", "copy")])
        return x * 2.0

    found = []
    f(1.0)
    assert plaingrad.grad(f)(1.0) == 2.0
    assert found[0] == found[1] == [False, found[0][1], False, True, True, True]


@pytest.mark.skipif(sys.version_info < (3, 14), reason="before, they cannot be removed")
def test_names_that_are_no_variables_are_removed_from_the_locals_of_a_frame():
    def f(x):
        mapping = sys._getframe().f_locals
        mapping["kept aside"] = x * 3.0
        with pytest.raises(ValueError):
            mapping.pop("x")
        with pytest.raises(KeyError):
            mapping.pop("nobody")
        return mapping.pop("kept aside") * x + mapping.pop("nobody", 2.0)

    check(f, 1.5, 9.0)
