"""The command line: derivatives of a function that stands in a file.

    plaingrad grad  model.py:loss --at '[1.5, [0.2, 0.3]]'
    plaingrad check model.py:loss --at '{"rate": 1.5, "start": [0.2, 0.3]}'
    plaingrad show  model.py:loss
    plaingrad cache

Exit status: 0 done; 1 the derivative was refused, the function failed, or a check did not hold; 2 the command
was wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import functools
import importlib.util
import inspect
import itertools
import json
import math
import os
import select
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plaingrad import api
from plaingrad.copying import deep_copy
from plaingrad.errors import PlaingradError

EPILOG = """\
examples:
  plaingrad grad model.py:loss --at '[1.5, [0.2, 0.3]]'      a list: one entry a positional argument
  plaingrad grad model.py:loss --at '{"rate": 1.5}'          an object: one entry a parameter, by name
  plaingrad grad model.py:loss --at '[[1, 2, 3]]' --array    lists of numbers become NumPy arrays
  plaingrad check model.py:loss --at '[1.5, 10]' --wrt 0     argument 1 is a count, not to be differentiated
  plaingrad show model.py:loss                               the rewritten instructions beside the original
  plaingrad cache prune --age 30                             forget compiled derivatives unused for 30 days
"""


READER_GONE = 141  # what a shell says of a command whose output nobody reads any more
DEEPEST = 100  # levels of lists and objects in --at


class UsageError(Exception):
    """The command cannot be carried out as given: one line on stderr, exit status 2."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `plaingrad` and return its exit status.

    Examples:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "model.py")
        >>> _ = file.write_text("def area(width, height): return width * height")
        >>> main(["grad", f"{file}:area", "--at", "[3.0, 4.0]"])
        [4.0, 3.0]
        0
    """
    options = parser().parse_args(argv)
    try:
        status = options.command(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except UsageError as error:
        print(f"plaingrad: {error}", file=sys.stderr)
        return 2
    except PlaingradError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except SystemExit as error:  # sys.exit in the user's function: it has not returned a number
        print(f"plaingrad: the function left by sys.exit({error.code!r})", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, OSError) and output_is_lost():
            return READER_GONE
        print(user_traceback(error), end="", file=sys.stderr)  # of the user's function: it says where
        return 1


def output_is_lost() -> bool:
    """Whether nobody reads standard output any more, as under `| head`; from then on it goes nowhere."""
    try:
        output = sys.stdout.fileno()
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        poll = select.poll()  # Windows has none: there the error is reported
    except (AttributeError, OSError, ValueError):
        return False
    poll.register(output, 0)
    lost = any(event & select.POLLERR for _, event in poll.poll(0))
    if lost:  # the interpreter flushes when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return lost


def parser() -> argparse.ArgumentParser:
    """The grammar of the command."""
    top = argparse.ArgumentParser(
        prog="plaingrad",
        description="Exact derivatives of ordinary Python functions.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument(
        "--version", action="version", version=f"plaingrad {sys.modules['plaingrad'].__version__}"
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("target", metavar="FILE.py:FUNC", help="a function in a file; FUNC may be dotted")
        sub.set_defaults(command=run)
        return sub

    for name, run, text in (
        ("grad", grad_command, "print the gradient at a point, as JSON of the same structure"),
        ("check", check_command, "compare the gradient with central differences, leaf by leaf"),
    ):
        sub = command(name, run, text)
        sub.add_argument(
            "--at", metavar="JSON", required=True, help="the point: a list, or an object by parameter name"
        )
        sub.add_argument("--array", action="store_true", help="make lists of numbers NumPy arrays")
        sub.add_argument(
            "--wrt",
            metavar="ARGUMENT",
            action="append",
            help="differentiate this argument (name or position, repeatable); otherwise all with numbers",
        )
        if name == "check":
            sub.add_argument(
                "--tolerance",
                type=positive,
                default=1e-5,
                help="relative error allowed (default %(default)g)",
            )
    command("show", show_command, "print the rewritten instructions beside the original ones")
    text = "say what the native tier keeps on disk, delete what is old, or all of it"
    cache = commands.add_parser("cache", help=text, description=text)
    cache.set_defaults(command=cache_command)
    cache.add_argument("action", nargs="?", choices=("list", "prune", "clear"), default="list")
    cache.add_argument(
        "--size", metavar="BYTES", help="prune: leave no more than this, as in 200M (default 1G)"
    )
    cache.add_argument(
        "--age", metavar="DAYS", type=positive, help="prune: what is unused for longer (default 90)"
    )
    return top


def positive(text: str) -> float:
    """A finite number above zero, for options."""
    number = float(text)
    if not 0.0 < number < math.inf:
        raise ValueError(text)
    return number


def version() -> str:
    """The version of the package that this module belongs to."""
    return sys.modules[__package__].__version__  # an import of the package itself would point upwards


# --- the commands ---


def grad_command(options: argparse.Namespace) -> int:
    """`plaingrad grad`: JSON of the structure of `--at`, null where there is no derivative."""
    call = Call.from_options(options)
    print(json.dumps(call.mirrored(call.gradient()), allow_nan=False))
    return 0


def check_command(options: argparse.Namespace) -> int:
    """`plaingrad check`: a table with one line a number, and 1 if one of them is not confirmed."""
    call = Call.from_options(options)
    comparisons = []
    for argument, x_bar in zip(call.wrt, call.gradient()):
        for keys, x, ours in leaves(call.args[argument], x_bar):
            path = call.names[argument] + "".join(f"[{key!r}]" for key in keys)
            along = functools.partial(call.value_with, argument, keys)
            comparisons.append(compare(along, x, ours, path, options.tolerance))
    print(table(comparisons))
    counts = {verdict: sum(c.verdict == verdict for c in comparisons) for verdict in SUMMARY}
    print(", ".join(f"{count} {SUMMARY[verdict]}" for verdict, count in counts.items() if count))
    return int(bool(counts["DISAGREES"] or counts["unclear"]))


def show_command(options: argparse.Namespace) -> int:
    """`plaingrad show`: what was made of the function."""
    api.show(load(options.target))
    return 0


def cache_command(options: argparse.Namespace) -> int:
    """`plaingrad cache`: what is kept on disk, one line a program, the last used first."""
    try:
        from plaingrad.native.machine import folder
    except ImportError:
        raise UsageError("the native tier is not installed: pip install 'plaingrad[native]'") from None
    where = folder.place()
    if where is None:
        print("nothing is kept: PLAINGRAD_CACHE_DIR is empty, or there is no home")
        return 0
    if options.action == "prune":
        try:
            size = folder.limit() if options.size is None else folder.bytes_of(options.size)
        except ValueError:
            raise UsageError(f"--size {options.size}: expected a number of bytes, as in 200M") from None
        age = folder.AGE if options.age is None else options.age * folder.DAY
        deleted = folder.prune(where, size, age)
    elif options.action == "clear":
        deleted = folder.clear(where)
    else:
        deleted = []
        for entry in sorted(folder.entries(where), key=lambda entry: -entry.used):
            used = time.strftime("%Y-%m-%d", time.localtime(entry.used))
            print(f"{used}  {entry.size:>10,}  {entry.name}")
    if options.action != "list":
        print(f"deleted {len(deleted)} of {sum(entry.size for entry in deleted):,} bytes")
    kept = folder.entries(where)
    print(f"{where}: {len(kept)} kept, {sum(entry.size for entry in kept):,} bytes")
    with contextlib.suppress(OSError):
        reason = folder.why_not(where)
        if reason is not None:
            print(f"nothing is read from it: {reason}")
    return 0


def user_traceback(error: Exception) -> str:
    """The traceback of `error` without the frames of this package."""
    report = traceback.TracebackException.from_exception(error)
    ours = str(Path(__file__).parent)
    frames = [frame for frame in report.stack if not frame.filename.startswith(ours)]
    report.stack = traceback.StackSummary.from_list(frames)
    return "".join(report.format())


# --- the call that the user described ---


@dataclass(frozen=True)
class Call:
    """A function and its positional arguments as read from `--at`.

    Attributes:
        names: one a positional argument, for paths and for output by name.
        wrt: positions of the arguments to be differentiated.
        by_name: `--at` was an object, so the output is one.
    """

    f: Callable[..., Any]
    args: tuple[Any, ...]
    names: tuple[str, ...]
    wrt: tuple[int, ...]
    by_name: bool

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> Call:
        """The call that the target, `--at`, `--array` and `--wrt` describe."""
        f = load(options.target)
        at = from_json(options.at)
        if not isinstance(at, (list, dict)):
            raise UsageError(
                f"--at must be a list of arguments or an object of named ones, not {shortened(options.at)}"
            )
        if isinstance(at, dict):
            f, names, values = arguments_by_name(f, at, options.target)
        else:
            names, values = argument_names(f, at, options.target), at
        args = tuple(as_arrays(value) if options.array else value for value in values)
        if options.wrt is None:
            wrt = tuple(i for i, value in enumerate(args) if has_number(value))
        else:
            wrt = tuple(dict.fromkeys(position(name, names) for name in options.wrt))
        args = tuple(as_reals(value) if i in wrt else value for i, value in enumerate(args))
        return cls(f, args, tuple(names), wrt, isinstance(at, dict))

    def gradient(self) -> tuple[Any, ...]:
        """One cotangent for each argument in `wrt`."""
        if not self.wrt:
            raise UsageError("--at holds no number to differentiate with respect to")
        try:
            return api.grad(self.f, argnums=self.wrt)(*deep_copy(self.args))
        except TypeError as error:
            if "as an integer" in str(error):
                error.add_note(
                    "An integer that is differentiated becomes a real number; leave it out with --wrt."
                )
            raise

    def mirrored(self, gradient: tuple[Any, ...]) -> Any:
        """The gradient in the structure of `--at`."""
        of = dict(zip(self.wrt, gradient))
        entries = [plain(of.get(i)) for i in range(len(self.args))]
        return dict(zip(self.names, entries)) if self.by_name else entries

    def value_with(self, argument: int, keys: tuple[Any, ...], x: float) -> float:
        """The plain value of the function with one number of one argument replaced by `x`."""
        args = list(deep_copy(self.args))
        args[argument] = replaced(args[argument], keys, x)
        return float(self.f(*args))


def load(target: str) -> Callable[..., Any]:
    """The callable that FILE.py:FUNC names; the file is run as an import would."""
    file, colon, name = target.rpartition(":")
    if not colon or not file or not name:
        raise UsageError(f"expected FILE.py:FUNC, got {target!r}")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"no such file: {file}")
    stem = path.stem if path.stem not in sys.modules else f"{path.stem}_at_the_command_line"
    spec = importlib.util.spec_from_file_location(stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"not a Python file: {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module  # dataclasses and pickle look their module up here
    sys.path.insert(
        0, str(path.resolve().parent)
    )  # the file may import its neighbours, as under `python FILE.py`
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        at = f" ({where.filename}:{where.lineno})" if not isinstance(error, SyntaxError) else ""
        raise UsageError(f"{file} cannot be imported: {type(error).__name__}: {error}{at}") from None
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            callables = [n for n, v in vars(module).items() if callable(v)]
            near = difflib.get_close_matches(name, callables, 1)
            raise UsageError(f"{file} has no {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        value = getattr(value, part)
    if not callable(value):
        raise UsageError(f"{name!r} in {file} is not callable, but of type {type(value).__name__}")
    return value


def argument_names(f: Callable[..., Any], values: list[Any], target: str) -> list[str]:
    """The parameter that each positional value goes to."""
    signature = signature_of(f)
    if signature is None:
        return [f"argument {i}" for i in range(len(values))]
    try:
        signature.bind(*values)
    except TypeError as error:
        raise UsageError(f"{target} takes {signature}: {error}") from None
    names = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(len(values) - len(names))]
        elif parameter.kind is not parameter.VAR_KEYWORD:
            names.append(parameter.name)
    return names[: len(values)]


def arguments_by_name(
    f: Callable[..., Any], values: dict[str, Any], target: str
) -> tuple[Callable[..., Any], list[str], list[Any]]:
    """`f` as a function of positional arguments, their names, and their values."""
    signature = signature_of(f)
    if signature is None:
        raise UsageError(f"{target} has no signature to name arguments by; give --at a list")
    unknown = [name for name in values if name not in signature.parameters]
    if unknown:
        raise UsageError(f"{target} takes {signature}: it has no parameter {unknown[0]!r}")
    positional_only = {p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_ONLY}
    first = [name for name in signature.parameters if name in positional_only and name in values]
    names = first + [name for name in values if name not in positional_only]
    split = len(first)

    @functools.wraps(f)
    def by_position(*args: Any) -> Any:
        return f(*args[:split], **dict(zip(names[split:], args[split:])))

    try:
        signature.bind(*[values[n] for n in names[:split]], **{n: values[n] for n in names[split:]})
    except TypeError as error:
        raise UsageError(f"{target} takes {signature}: {error}") from None
    return by_position, names, [values[name] for name in names]


def signature_of(f: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of `f`, or None if it does not tell."""
    try:
        return inspect.signature(f)
    except (TypeError, ValueError):
        return None


def position(name: str, names: Sequence[str]) -> int:
    """Where the argument called `name`, or at that position, is."""
    if name in names:
        return list(names).index(name)
    if name.isdecimal() and len(name) < 10 and int(name) < len(names):
        return int(name)
    raise UsageError(f"--wrt {name}: the arguments given are {', '.join(names) or 'none'}")


# --- structures of JSON ---


def from_json(text: str) -> Any:
    """The value of `--at`, which must be strict JSON: no NaN, no name twice, no number that no float can hold."""

    def refused(what: str) -> Any:
        raise UsageError(f"--at is not a point: {what}")

    def real(digits: str) -> float:
        x = float(digits)
        return x if math.isfinite(x) else refused(f"no float is as large as {shortened(digits)}")

    def integer(digits: str) -> int:
        real(digits)
        return int(digits)

    def entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            refused(f"the name {shortened(repr(twice))} stands in one object twice")
        return made

    try:
        at = json.loads(
            text,
            object_pairs_hook=entries,
            parse_float=real,
            parse_int=integer,
            parse_constant=lambda name: refused(name),
        )
    except json.JSONDecodeError as error:
        raise UsageError(f"--at is not JSON: {error}") from None
    except RecursionError:
        at = refused(f"it is nested more than {DEEPEST} deep")
    inside = [at]
    for _ in range(DEEPEST):
        inside = [
            part
            for x in inside
            if isinstance(x, (list, dict))
            for part in (x.values() if isinstance(x, dict) else x)
        ]
    return refused(f"it is nested more than {DEEPEST} deep") if inside else at


def shortened(text: str) -> str:
    """At most the beginning of a long text, for messages of one line."""
    return text if len(text) <= 40 else f"{text[:30]}... ({len(text)} characters)"


def as_reals(value: Any) -> Any:
    """`value` with its integers as floats: a point has real coordinates."""
    if isinstance(value, dict):
        return {key: as_reals(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [as_reals(entry) for entry in value]
    return float(value) if is_number(value) else value


def is_number(x: Any) -> bool:
    """Whether `x` is a JSON number; true and false are none."""
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def has_number(value: Any) -> bool:
    """Whether a number is anywhere in `value`."""
    if isinstance(value, np.ndarray):
        return value.size > 0
    if isinstance(value, (list, dict)):
        return any(map(has_number, value.values() if isinstance(value, dict) else value))
    return is_number(value)


def as_arrays(value: Any) -> Any:
    """`value` with each outermost rectangular list of numbers as a float64 array."""
    if isinstance(value, dict):
        return {key: as_arrays(entry) for key, entry in value.items()}
    if not isinstance(value, list):
        return value
    try:
        array = np.array(value)
    except ValueError:  # ragged
        return [as_arrays(entry) for entry in value]
    return array.astype(float) if array.dtype.kind in "iuf" else [as_arrays(entry) for entry in value]


def plain(x_bar: Any) -> Any:
    """A gradient as JSON can hold it: what is no finite number as the text that `float` reads."""
    if isinstance(x_bar, dict):
        return {key: plain(entry) for key, entry in x_bar.items()}
    if isinstance(x_bar, (list, tuple)):
        return [plain(entry) for entry in x_bar]
    if isinstance(x_bar, (np.ndarray, np.generic)):
        return plain(x_bar.tolist())
    if isinstance(x_bar, float) and not math.isfinite(x_bar):
        return str(x_bar)
    return x_bar


def leaves(x: Any, x_bar: Any) -> Iterator[tuple[tuple[Any, ...], float, float]]:
    """The keys, the value and the derivative of every number in `x`."""
    if isinstance(x, np.ndarray):
        for index in np.ndindex(x.shape):
            yield index, float(x[index]), float(x_bar[index])
    elif isinstance(x, (list, dict)):
        for key in range(len(x)) if isinstance(x, list) else x:
            for keys, value, derivative in leaves(x[key], x_bar[key]):
                yield (key, *keys), value, derivative
    elif is_number(x):
        yield (), x, x_bar


def replaced(value: Any, keys: tuple[Any, ...], x: float) -> Any:
    """`value` with the number under `keys` replaced, in place where it can be."""
    if not keys:
        return x
    if isinstance(value, np.ndarray):
        value[keys] = x
    else:
        value[keys[0]] = replaced(value[keys[0]], keys[1:], x)
    return value


# --- comparison with differences ---

STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
EPS = float(np.finfo(float).eps)
SUMMARY = {"agrees": "agree", "kink": "on a kink", "unclear": "unclear", "DISAGREES": "DISAGREE"}


@dataclass(frozen=True)
class Comparison:
    """One number's derivative beside the best central difference; `verdict` is a key of SUMMARY."""

    path: str
    ours: float
    difference: float
    verdict: str

    @property
    def error(self) -> float:
        """|ours - difference| relative to the larger of the two."""
        if self.ours == self.difference:
            return 0.0
        return abs(self.ours - self.difference) / max(abs(self.ours), abs(self.difference))


def compare(f: Callable[[float], float], x: float, ours: float, path: str, tolerance: float) -> Comparison:
    """Judge `ours` as the derivative of `f` at `x`.

    Of the central differences at several steps the best is the one that changed least from the step before
    it, not the one nearest to us. Where the differences do not settle, they cannot judge (`unclear`); where the
    slopes to the left and to the right settle on two numbers and ours is not outside them, `x` sits on a kink,
    and ours is one of the answers.
    """
    x = float(x)
    at = value_or_nan(f, x)
    sides = [slopes(f, x, at, step) for step in steps_for(x)]
    sides = [s for s in sides if all(map(math.isfinite, s))]
    if len(sides) < 2 or not math.isfinite(ours):
        return Comparison(path, ours, math.nan, "unclear")
    central = [((left + right) / 2, noise) for left, right, noise in sides]
    centre, spread, noise = settled(central)
    truncation = min(
        2 * spread, tolerance * max(abs(slope) for slope, _ in central)
    )  # where the derivative is zero
    allowed = tolerance * max(abs(ours), abs(centre)) + 10 * noise + truncation
    if abs(ours - centre) <= allowed:
        return Comparison(path, ours, centre, "agrees")
    left, left_spread, _ = settled([(left, noise) for left, _, noise in sides])
    right, right_spread, _ = settled([(right, noise) for _, right, noise in sides])
    gap, blur = abs(right - left), 10 * (left_spread + right_spread) + allowed
    if gap > blur and min(left, right) - blur <= ours <= max(left, right) + blur:
        return Comparison(path, ours, centre, "kink")
    return Comparison(path, ours, centre, "unclear" if spread > abs(ours - centre) / 10 else "DISAGREES")


def steps_for(x: float) -> list[float]:
    """Absolute steps, largest first: relative to max(|x|, 1), and to |x| where that is much smaller."""
    scales = [max(abs(x), 1.0)] + ([abs(x)] if 0 < abs(x) < 0.1 else [])
    return sorted({step * scale for step in STEPS for scale in scales}, reverse=True)


def slopes(f: Callable[[float], float], x: float, at: float, step: float) -> tuple[float, float, float]:
    """The slope to the left, the slope to the right, and the size of rounding noise in them."""
    above, below = x + step, x - step
    f_above, f_below = value_or_nan(f, above), value_or_nan(f, below)
    noise = EPS * max(abs(f_above), abs(f_below), abs(at)) / step
    return (at - f_below) / (x - below), (f_above - at) / (above - x), noise


def settled(estimates: list[tuple[float, float]]) -> tuple[float, float, float]:
    """The estimate that differs least from the one before it, by how much, and its noise."""
    pairs = [(abs(b - a) + noise, b, noise) for (a, _), (b, noise) in itertools.pairwise(estimates)]
    spread, value, noise = min(pairs)
    return value, spread, noise


def value_or_nan(f: Callable[[float], float], x: float) -> float:
    """f(x), or nan where it is not defined: a step may leave the domain."""
    try:
        return f(x)
    except (ArithmeticError, ValueError):
        return math.nan


def table(comparisons: Sequence[Comparison]) -> str:
    """One line a number, columns aligned."""
    rows = [("path", "ours", "difference", "rel. error", "verdict")]
    rows += [
        (c.path, f"{c.ours:.9g}", f"{c.difference:.9g}", f"{c.error:.1e}", c.verdict) for c in comparisons
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = []
    for row in rows:
        numbers = [cell.rjust(width) for cell, width in zip(row[1:4], widths[1:4])]
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers, row[4]]))
    return "\n".join(lines)
