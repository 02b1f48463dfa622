"""The call that the command line describes: a function in a file, and its arguments."""

from __future__ import annotations

import argparse
import difflib
import functools
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plaingrad import api
from plaingrad.cli.points import as_arrays, as_reals, from_json, has_number, plain, replaced, shortened
from plaingrad.cli.usage import UsageError
from plaingrad.copying import deep_copy


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
        if inspect.iscoroutinefunction(f):
            raise UsageError(f"{options.target} is `async def`: name a function that runs it, by asyncio.run")
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
