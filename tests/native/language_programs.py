"""The programs of `tests/language` as the native tier meets them: which of them Numba can type, and why the others cannot.

    python -m tests.native.language_programs    # writes the two lists anew; needs PYTHONPATH=src

`language_taken.txt` names the programs that are differentiated natively, `language_refused.txt` the others with the reason;
test_language_programs.py sees to it that every program is in one of them and that none of the first drops out.
"""

import copy
import importlib.util
import inspect
import itertools
import re
import resource
import signal
import sys
import types
from pathlib import Path

import pytest

import plaingrad
from tests.native import comparison

HERE = Path(__file__).parent
LANGUAGE = HERE.parent / "language"
TAKEN, REFUSED = HERE / "language_taken.txt", HERE / "language_refused.txt"
NUMBAS_OWN = {  # programs that mean something else to Numba, or are too much for it
    "test_bytecode_oddities::test_a_function_of_thousands_of_lines#0": "its time grows with the square of the lines",
    "test_numbers::test_roots_of_a_negative_number_are_complex_as_in_plain_code#0": "a real power of a negative number is nan",
    "test_numbers::test_roots_of_a_negative_number_are_complex_as_in_plain_code#1": "a real power of a negative number is nan",
    "test_bytecode_oddities::test_globals_without_builtins_and_with_builtins_replaced#0": "its builtins are Python's",
    "test_bytecode_oddities::test_globals_without_builtins_and_with_builtins_replaced#1": "its builtins are Python's",
    "test_straight_arithmetic::test_a_float_subclass_argument_and_its_operators_are_left_to_it#0": "a subclass of float is a float",
    "test_frames::test_function_attributes_read_inside_are_the_originals[1]#0": "a function there is one of its own",
    "test_frames::test_function_attributes_read_inside_are_the_originals[2]#0": "a function there is one of its own",
    "test_mutation::test_a_zero_dimensional_array_is_a_box_that_is_written#0": "it types this but does not compile it",
}
LEFT_OUT = ("test_random_programs", "test_random_control_flow")  # tests/native has random programs of its own


def recorded():
    """{name: (function, arguments, expected gradient)} of every call of `check` in the tests of the language."""
    found = {}
    modules = {name: sys.modules.get(name) for name in ("cases", "cases_b")}
    try:
        cases = load(LANGUAGE / "cases.py", "cases")
        cases_b = load(LANGUAGE / "cases_b.py", "cases_b")
        notes = []

        def check(f, *args, gradient, **_):
            notes.append((f, copy.deepcopy(args), gradient))

        def check_one(f, x, expected, *_, **__):
            notes.append((f, (copy.deepcopy(x),), expected))

        cases.check = cases.check_or_refused = check
        cases_b.check = cases_b.check_or_refuse = check_one
        for path in sorted(LANGUAGE.glob("test_*.py")):
            if path.stem in LEFT_OUT:
                continue
            module = load(path, f"language_{path.stem}")
            for name, test in list(vars(module).items()):
                if name.startswith("test_") and inspect.isfunction(test) and may_check(test.__code__, vars(module)):
                    for mark, values in parametrized(test):
                        notes.clear()
                        run(test, values)
                        for k, note in enumerate(notes):
                            found[f"{path.stem}::{name}{mark}#{k}"] = note
    finally:
        for name, module in modules.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
    return found


def may_check(code, space, seen=()):
    """Whether a test names a function `check...`, itself or in what it calls or defines; the others take time for nothing."""
    if any("check" in name for name in code.co_names):
        return True
    inside = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    named = [getattr(space.get(name), "__code__", None) for name in code.co_names]
    seen = (*seen, code)
    return any(may_check(c, space, seen) for c in inside + named if c is not None and c not in seen)


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parametrized(test):
    """(mark, arguments) of every case of a test."""
    axes = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0] if isinstance(mark.args[0], (list, tuple)) else re.split(r"\s*,\s*", mark.args[0])
            values = [getattr(v, "values", v) if type(v).__name__ == "ParameterSet" else v for v in mark.args[1]]
            axes.append([dict(zip(names, v if len(names) > 1 or type(v).__name__ == "ParameterSet" else (v,))) for v in values])
    for k, chosen in enumerate(itertools.product(*axes)):
        yield f"[{k}]" if axes else "", {name: v for part in chosen for name, v in part.items()}


def run(test, values):
    """The test with `check` recording; what needs a fixture is left out, what fails without its results too."""
    if set(inspect.signature(test).parameters) - set(values):
        return
    try:
        test(**values)
    except (Exception, pytest.skip.Exception):
        pass


def native(f, args):
    """(value, gradient) of a program, natively, run by CPython.

    Raises:
        NativeError: it is refused.
    """
    at = comparison.differentiable(args)
    if not isinstance(f, types.FunctionType) or not at:
        raise plaingrad.NativeError("not a Python function of numbers and arrays")
    return comparison.gradient(f, copy.deepcopy(args), at)


def plain(f, args):
    """(value, gradient) by the plain tier."""
    return plaingrad.value_and_grad(f, comparison.differentiable(args), tier="plain")(*copy.deepcopy(args))


def reason(error):
    """A refusal, without its place, in a line."""
    text = re.sub(r" at \S+:\d+.*", "", " ".join(str(error).replace(f"{LANGUAGE.parents[1]}/", "").split("To go on")[0].split()))
    text = re.sub(r"^Numba cannot compile `.*?` .*?for \(.*?\): ", "Numba: ", text)
    text = re.sub(r"0x[0-9a-f]+", "0x", text.split("Raised from")[0])
    return re.sub(r"Failed in \w+ mode pipeline \(step: (.*?)\)", r"\1:", text)[:110]


def alarmed(*_):
    raise plaingrad.NativeError("takes too long")


def main():
    taken, refused = [], []
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    for name, (f, args, _) in recorded().items():
        if name in NUMBAS_OWN:
            refused.append(f"{name}  left to the plain tier by Numba: {NUMBAS_OWN[name]}")
            continue
        print(name, flush=True)
        signal.signal(signal.SIGALRM, alarmed)
        signal.alarm(15)
        try:
            value, gradient = native(f, args)
            y, expected = plain(f, args)
            comparison.assert_close(value, y, 1e-12, "value")
            comparison.assert_close(gradient, expected, 1e-12, "gradient")
            taken.append(name)
        except plaingrad.NativeError as error:
            refused.append(f"{name}  {reason(error)}")
        except Exception as error:
            refused.append(f"{name}  RAISES {type(error).__name__}: {' '.join(str(error).split())[:90]}")
        finally:
            signal.alarm(0)
    TAKEN.write_text("\n".join(sorted(taken)) + "\n")
    REFUSED.write_text("\n".join(sorted(refused)) + "\n")
    print(len(taken), "taken,", len(refused), "refused")


if __name__ == "__main__":
    main()
