"""The public names of a module, each with what becomes of it under differentiation."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from plaingrad.cli.reach import STATUSES, Obstacle, Verdict, verdict
from plaingrad.cli.usage import UsageError
from plaingrad.engine.users_code.class_attributes import lookup

# Parts of the two libraries in which nothing is computed with numbers that could be differentiated.
NO_MATHEMATICS = frozenset(
    "numpy.char numpy.core numpy.ctypeslib numpy.distutils numpy.dtypes numpy.exceptions numpy.f2py numpy.rec "
    "numpy.strings numpy.testing numpy.typing numpy.version scipy.datasets scipy.io scipy.misc".split()
)


@dataclass(frozen=True)
class Entry:
    """One public name.

    Attributes:
        name: as a user writes it, with its module.
        module: where it is listed.
        kind: "function", "ufunc", "class", "method" or "object".
        verdict: what becomes of it.
    """

    name: str
    module: str
    kind: str
    verdict: Verdict

    @property
    def status(self) -> str:
        """One of `STATUSES`."""
        return self.verdict.status

    def as_json(self) -> dict[str, Any]:
        """The entry as plain data."""
        obstacles = [{"name": o.name, "why": o.why, "way": list(o.way)} for o in self.verdict.obstacles]
        facts = {"name": self.name, "module": self.module, "kind": self.kind, "status": self.status}
        return facts | {"why": self.verdict.why, "obstacles": obstacles}


def found(target: str) -> tuple[ModuleType, Any, str]:
    """The module that `target` is or lies in, the object that it names, and the name of that in the module."""
    parts = target.split(".")
    if not all(part.isidentifier() for part in parts):
        raise UsageError(f"expected the name of a module or of something in one, got {target!r}")
    module = imported(parts[0])
    if module is None:
        raise UsageError(f"there is no module {parts[0]!r}")
    value: Any = module
    for k, part in enumerate(parts[1:], 1):
        if isinstance(value, ModuleType):
            inner = imported(f"{value.__name__}.{part}") if part not in vars(value) else None
            if inner is not None:
                module = value = inner
                continue
        try:
            value = getattr(value, part)
        except AttributeError:
            raise UsageError(f"{'.'.join(parts[:k])} has no {part!r}") from None
        module = value if isinstance(value, ModuleType) else module
    name = target.removeprefix(module.__name__).removeprefix(".")
    return module, value, name


def imported(name: str) -> ModuleType | None:
    """The module of this name, which is imported if it must be; None if there is none."""
    if name in sys.modules:
        return sys.modules[name]
    try:
        if importlib.util.find_spec(name) is None:
            return None
    except (ImportError, ValueError, AttributeError):
        return None
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name} cannot be imported: {type(error).__name__}: {error}") from None


def survey(module: ModuleType) -> list[Entry]:
    """Every public name of a module and of the modules that are part of it, each object once."""
    entries: list[Entry] = []
    seen: set[int] = set()
    for part in parts_of(module):
        for name, value in public_names(part):
            if id(value) in seen:
                continue
            seen.add(id(value))
            entries += entries_of(value, f"{part.__name__}.{name}", part.__name__)
    return entries


def parts_of(module: ModuleType) -> Iterator[ModuleType]:
    """The module itself, and the public modules that it names as its own; these are imported as its users would."""
    yield module
    for name in public(module):
        full = f"{module.__name__}.{name}"
        inner = vars(module).get(name)
        if inner is None and hasattr(module, "__all__"):
            inner = imported(full)
        if not isinstance(inner, ModuleType) or inner.__name__ != full or full in NO_MATHEMATICS:
            continue
        if "_sub_module_deprecation" not in vars(inner):  # SciPy's old names of modules
            yield from parts_of(inner)


def public(module: ModuleType) -> list[str]:
    """The names that a module offers: those in `__all__`, or those without underscore."""
    names = getattr(module, "__all__", None)
    names = [name for name in vars(module) if not name.startswith("_")] if names is None else names
    return sorted({name for name in names if isinstance(name, str)})


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module offers that can be called, or has methods that can be."""
    says = hasattr(module, "__all__")
    root = module.__name__.partition(".")[0]
    for name in public(module):
        value = vars(module).get(name)
        if value is None or isinstance(value, ModuleType):
            continue
        home = getattr(value, "__module__", None)
        if not says and not (isinstance(home, str) and home.partition(".")[0] == root):
            continue  # it is imported from elsewhere
        if not isinstance(value, (np.ndarray, np.generic)) and (
            callable(value) or own_methods(type(value), root)
        ):
            yield name, value


def entries_of(value: Any, name: str, module: str) -> Iterator[Entry]:
    """The entry of one name, and those of its methods."""
    root = module.partition(".")[0]
    if isinstance(value, type):
        if not issubclass(value, BaseException):
            yield Entry(name, module, "class", quietly(value))
            yield from methods(value, name, module, own_methods(value, root))
    elif isinstance(value, FunctionType) or not own_methods(type(value), root):
        kind = "ufunc" if isinstance(value, np.ufunc) else "function"
        yield Entry(name, module, kind, quietly(value))
    else:
        if callable(value):
            yield Entry(name, module, "object", quietly(value))
        yield from methods(type(value), name, module, own_methods(type(value), root))


def methods(cls: type, name: str, module: str, names: list[str]) -> Iterator[Entry]:
    """An entry for each of these methods of a class."""
    for method in names:
        yield Entry(f"{name}.{method}", module, "method", quietly(lookup(cls, method), cls))


def own_methods(cls: type, root: str) -> list[str]:
    """The public methods, and `__call__`, that a class of the library `root`, or a base of it there, defines."""
    names: set[str] = set()
    if cls in (np.ufunc, type(np.sum)) or (issubclass(cls, np.generic) and cls is not np.generic):
        return []  # NumPy's types of numbers have the methods of np.generic
    for base in cls.__mro__:
        home = vars(base).get("__module__", base.__module__)
        if isinstance(home, str) and home.partition(".")[0] == root:
            for name, value in vars(base).items():
                is_data = isinstance(value, (GetSetDescriptorType, MemberDescriptorType, type))
                if (not name.startswith("_") or name == "__call__") and not is_data and is_method(value):
                    names.add(name)
    return sorted(names)


def is_method(value: Any) -> bool:
    """Whether an attribute of a class is a method or computes a property."""
    return callable(value) or isinstance(value, (staticmethod, classmethod, property))


def quietly(value: Any, owner: type | None = None) -> Verdict:
    """The verdict; what a library has to say about the use of its old names is not for the reader of the list."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return verdict(value, owner)


def counts(entries: list[Entry]) -> dict[str, int]:
    """How many entries have each status."""
    count = Counter(entry.status for entry in entries)
    return {status: count[status] for status in STATUSES}


__all__ = ["Entry", "Obstacle", "counts", "found", "survey"]
