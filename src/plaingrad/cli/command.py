"""What `plaingrad` does: its grammar, its commands, and what they print."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import importlib
import json
import math
import os
import select
import shlex
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plaingrad import api
from plaingrad.cli import coverage
from plaingrad.cli.call import Call, load
from plaingrad.cli.matrices import grad_command, hessian_command, jacobian_command, path
from plaingrad.cli.points import leaves, plain
from plaingrad.cli.usage import UsageError
from plaingrad.errors import PlaingradError
from plaingrad.tables import aligned

if TYPE_CHECKING:
    from plaingrad.testing.slopes import Comparison

EPILOG = """\
examples:
  plaingrad grad model.py:loss --at '[1.5, [0.2, 0.3]]'      a list: one entry a positional argument
  plaingrad grad model.py:loss --at '{"rate": 1.5}'          an object: one entry a parameter, by name
  plaingrad grad model.py:loss --at '[[1, 2, 3]]' --array    lists of numbers become NumPy arrays
  plaingrad jacobian model.py:curve --at '[0.5]' --table     of each number that is returned, as a table
  plaingrad check model.py:loss --at '[1.5, 10]' --wrt 0     argument 1 is a count, not to be differentiated
  plaingrad why model.py:loss --at '[0.0]'                   which line makes it nan, which one cuts the gradient
  plaingrad profile model.py:loss --at '[0.5]' --save p.html where time and memory go, by line
  plaingrad show model.py:loss                               the rewritten instructions beside the original
  plaingrad coverage scipy.linalg --refused                  what of a library has no derivative, and why
  plaingrad cache prune --age 30                             forget compiled derivatives unused for 30 days
"""


READER_GONE = 141  # what a shell says of a command whose output nobody reads any more


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
    grammar = parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks how the line may go on
        with contextlib.suppress(ImportError):  # without the extra `completion`
            importlib.import_module("argcomplete").autocomplete(grammar)
    options = grammar.parse_args(argv)
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
        ("jacobian", jacobian_command, "print the derivatives of every number that the function returns"),
        ("hessian", hessian_command, "print the second derivatives at a point"),
        ("check", check_command, "compare the gradient with central differences, leaf by leaf"),
        (
            "why",
            why_command,
            "say where the derivative is not finite, and which inputs have no influence, by line",
        ),
        ("profile", profile_command, "say where time and memory of the gradient go, by line"),
        ("why-not-native", why_not_native_command, "list what stands in the way of the native tier"),
    ):
        add_options(command(name, run, text), name)
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
    coverage.add_to(commands)
    text = "print the versions in use, and whether the compiled core is"
    about = commands.add_parser("info", help=text, description=text)
    about.set_defaults(command=info_command)
    for sub in (cache, about):
        sub.add_argument("--json", action="store_true", help="print JSON")
    return top


def add_options(sub: argparse.ArgumentParser, name: str) -> None:
    """The options of the commands that take a point."""
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
    if name in ("grad", "jacobian", "hessian"):
        sub.add_argument("--table", action="store_true", help="print a table, a line a number, not JSON")
    if name in ("check", "why", "profile", "why-not-native"):
        sub.add_argument("--json", action="store_true", help="print JSON")
    if name == "why":
        sub.add_argument(
            "--mode", choices=("reverse", "forward"), default="reverse", help="cotangents, or tangents"
        )
    if name == "profile":
        sub.add_argument("--save", metavar="PAGE.html", help="write the annotated source as an HTML page")
    if name == "check":
        sub.add_argument(
            "--tolerance",
            type=positive,
            default=1e-5,
            help="relative error allowed (default %(default)g)",
        )


def positive(text: str) -> float:
    """A finite number above zero, for options."""
    number = float(text)
    if not 0.0 < number < math.inf:
        raise ValueError(text)
    return number


# --- the commands ---


def check_command(options: argparse.Namespace) -> int:
    """`plaingrad check`: a table with one line a number, and 1 if one of them is not confirmed."""
    from plaingrad.testing.slopes import SUMMARY, compare

    call = Call.from_options(options)
    comparisons = []
    for argument, x_bar in zip(call.wrt, call.gradient()):
        for keys, x, ours in leaves(call.args[argument], x_bar):
            along = functools.partial(call.value_with, argument, keys)
            name = path(call.names[argument], keys)
            comparisons.append(compare(along, x, ours, name, options.tolerance))
    counts = {verdict: sum(c.verdict == verdict for c in comparisons) for verdict in SUMMARY}
    if options.json:
        print(json.dumps([plain(dataclasses.asdict(c)) for c in comparisons], allow_nan=False))
    else:
        print(table(comparisons))
        print(", ".join(f"{count} {SUMMARY[verdict]}" for verdict, count in counts.items() if count))
        if any(not math.isfinite(c.ours) for c in comparisons):
            print(f"not finite: plaingrad why {options.target} --at {shlex.quote(options.at)} names the line")
    return int(bool(counts["DISAGREES"] or counts["unclear"]))


def why_command(options: argparse.Namespace) -> int:
    """`plaingrad why`: what `explain` finds, and 1 if something is not finite."""
    from plaingrad.diagnosis import explain

    call = Call.from_options(options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of what is told below, by the user's line
        found = explain(call.f, *call.args, argnums=call.wrt, mode=options.mode)
    print(json.dumps(found.as_json()) if options.json else found)
    return int(bool(found.events))


def profile_command(options: argparse.Namespace) -> int:
    """`plaingrad profile`: the table of lines, and the page if it is asked for."""
    from plaingrad.diagnosis import profile

    call = Call.from_options(options)
    found = profile(call.f, *call.args, argnums=call.wrt)
    print(json.dumps(found.as_json()) if options.json else found)
    if options.save:
        found.save(options.save)
    return 0


def why_not_native_command(options: argparse.Namespace) -> int:
    """`plaingrad why-not-native`: each obstacle with its place, and 1 if there is one."""
    call = Call.from_options(options)
    found = api.why_not_native(call.f, *call.args)
    print(json.dumps([dataclasses.asdict(obstacle) for obstacle in found]) if options.json else found)
    return int(bool(found))


def show_command(options: argparse.Namespace) -> int:
    """`plaingrad show`: what was made of the function."""
    api.show(load(options.target))
    return 0


def info_command(options: argparse.Namespace) -> int:
    """`plaingrad info`: one line a package, and the form of the core."""
    about = api.info()
    if options.json:
        print(json.dumps(about))
    else:
        print(aligned([[name, value or "not installed"] for name, value in about.items()]))
    return 0


def cache_command(options: argparse.Namespace) -> int:
    """`plaingrad cache`: what is kept on disk, one line a program, the last used first."""
    try:
        from plaingrad.native.machine import folder
    except ImportError:
        raise UsageError("the native tier is not installed: pip install 'plaingrad[native]'") from None
    where = folder.place()
    if where is None:
        said = "nothing is kept: PLAINGRAD_CACHE_DIR is empty, or there is no home"
        print(
            json.dumps({"folder": None, "entries": [], "deleted": 0, "why": said}) if options.json else said
        )
        return 0
    deleted = []
    if options.action == "prune":
        try:
            size = folder.limit() if options.size is None else folder.bytes_of(options.size)
        except ValueError:
            raise UsageError(f"--size {options.size}: expected a number of bytes, as in 200M") from None
        age = folder.AGE if options.age is None else options.age * folder.DAY
        deleted = folder.prune(where, size, age)
    elif options.action == "clear":
        deleted = folder.clear(where)
    kept = sorted(folder.entries(where), key=lambda entry: -entry.used)
    reason = None
    with contextlib.suppress(OSError):
        reason = folder.why_not(where)
    if options.json:
        entries = [{"name": entry.name, "bytes": entry.size, "used": day(entry.used)} for entry in kept]
        print(json.dumps({"folder": str(where), "entries": entries, "deleted": len(deleted), "why": reason}))
        return 0
    if options.action == "list":
        for entry in kept:
            print(f"{day(entry.used)}  {entry.size:>10,}  {entry.name}")
    else:
        print(f"deleted {len(deleted)} of {sum(entry.size for entry in deleted):,} bytes")
    print(f"{where}: {len(kept)} kept, {sum(entry.size for entry in kept):,} bytes")
    if reason is not None:
        print(f"nothing is read from it: {reason}")
    return 0


def day(used: float) -> str:
    """The date of a time of the clock."""
    return time.strftime("%Y-%m-%d", time.localtime(used))


def user_traceback(error: Exception) -> str:
    """The traceback of `error` without the frames of this package."""
    report = traceback.TracebackException.from_exception(error)
    ours = str(Path(__file__).parents[1])
    frames = [frame for frame in report.stack if not frame.filename.startswith(ours)]
    report.stack = traceback.StackSummary.from_list(frames)
    return "".join(report.format())


def table(comparisons: Sequence[Comparison]) -> str:
    """One line a number, columns aligned."""
    rows = [("path", "ours", "difference", "rel. error", "verdict")]
    rows += [
        (c.path, f"{c.ours:.9g}", f"{c.difference:.9g}", f"{c.error:.1e}", c.verdict) for c in comparisons
    ]
    return aligned(rows, right=(1, 2, 3))
