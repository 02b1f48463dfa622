"""A static call graph, one function deep: which callables the bytecode of a function names.

Names are looked up as they are when asked: globals, closures, attributes of modules and classes, methods of `self`,
what the function imports and is imported already. Nothing is imported, called or changed. What is an attribute of a
value that only the running function knows stays unknown, but for methods of the classes that it names.
"""

from __future__ import annotations

import builtins
import dis
import importlib.util
import os
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any, NamedTuple

from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.origin import is_standard

UNSEEN = frozenset(
    "CACHE PRECALL PUSH_NULL EXTENDED_ARG NOP RESUME COPY_FREE_VARS MAKE_CELL NOT_TAKEN CHECK_EXC_MATCH".split()
)
CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT")
CONSTRUCTORS = ("__new__", "__init__", "__post_init__")
FINDERS = frozenset(("get_lapack_funcs", "get_blas_funcs"))  # what they find is named where they are called
MOST = 400  # entries of a table that are looked at
UNKNOWN, SELF, SUPER = object(), object(), object()


class Reference(NamedTuple):
    """A callable that is named; of a method also the class of the object that it is called of."""

    value: Any
    owner: type | None = None


def references(function: FunctionType, owner: type | None = None) -> list[Reference]:
    """The callables that `function`, a method of objects of the class `owner`, names."""
    found: dict[tuple[int, int], Reference] = {}
    reader = Reader(function, owner)
    for reference in reader.all_of():
        found.setdefault((id(reference.value), id(reference.owner)), reference)
    return list(found.values())


class Reader:
    """The instructions of one function, with those of the functions that it defines, gone through in order."""

    def __init__(self, function: FunctionType, owner: type | None) -> None:
        self.function = function
        self.owner = owner
        self.attributes: set[str] = set()  # of values that are not known
        self.classes: list[type] = []
        self.cells: dict[str, Any] = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                self.cells[name] = cell.cell_contents
            except ValueError:  # it is empty
                pass
        names = function.__code__.co_varnames
        self.self_name = names[0] if owner is not None and function.__code__.co_argcount else None

    def all_of(self) -> Iterator[Reference]:
        """Every callable that is named, and the methods of the classes among them by their names."""
        for code in nested(self.function.__code__):
            for value, owner in self.values(code):
                if isinstance(value, type):
                    self.classes.append(value)
                if callable(value) or isinstance(value, (staticmethod, classmethod)):
                    yield Reference(value, owner)
                else:
                    yield from map(Reference, callables_in(value))
        yield from self.wrapped_routines()
        for cls in self.classes:
            for name in ("__call__", *sorted(self.attributes)):
                method = lookup(cls, name)
                if type(method) is FunctionType:
                    yield Reference(method, cls)
                elif isinstance(method, property) and type(method.fget) is FunctionType:
                    yield Reference(method.fget, cls)

    def wrapped_routines(self) -> Iterator[Reference]:
        """LAPACK's and BLAS's routines, which SciPy's functions find by name."""
        codes = list(nested(self.function.__code__))
        if not any(FINDERS.intersection(code.co_names) for code in codes):
            return
        constants = [constant for code in codes for constant in code.co_consts]
        inner = [text for constant in constants if isinstance(constant, tuple) for text in constant]
        names = {text for text in [*constants, *inner] if isinstance(text, str) and text.isidentifier()}
        for module in ("scipy.linalg.lapack", "scipy.linalg.blas"):
            routines = vars(sys.modules.get(module, builtins))
            yield from (Reference(routines[f"d{name}"]) for name in sorted(names) if f"d{name}" in routines)

    def values(self, code: CodeType) -> Iterator[tuple[Any, type | None]]:
        """What the names of one code object stand for, chains of attributes followed as far as they are known."""
        instructions = [one for one in dis.get_instructions(code) if one.opname not in UNSEEN]
        imported: dict[str, Any] = {}
        module: Any = UNKNOWN
        current: Any = UNKNOWN
        owner: type | None = None
        asks_super = False
        for k, one in enumerate(instructions):
            name, arg = one.opname, one.argval
            if name in ("LOAD_ATTR", "LOAD_METHOD"):
                current, owner = self.attribute(current, arg)
            elif name == "LOAD_SUPER_ATTR":
                current, owner = self.attribute(SUPER, arg)
            elif name == "IMPORT_FROM":
                current = module = module if isinstance(module, ModuleType) else UNKNOWN
                current, owner = self.attribute(module, arg)
            elif name.startswith("STORE_") and instructions[k - 1].opname.startswith("IMPORT_"):
                imported[arg] = current
            else:
                owner = None
                if name == "IMPORT_NAME":
                    level, fromlist = [one.argval for one in instructions[k - 2 : k]]
                    current = module = self.module(arg, level, fromlist)
                elif name == "CALL" and asks_super:
                    current, asks_super = SUPER, False
                else:
                    current = self.start(name, arg, imported)
                    asks_super = asks_super or current is super
            following = instructions[k + 1].opname if k + 1 < len(instructions) else ""
            is_known = current is not UNKNOWN and current is not SELF and current is not SUPER
            is_table = isinstance(current, (dict, list, tuple))
            if is_known and (is_table or following not in ("LOAD_ATTR", "LOAD_METHOD")):
                yield current, owner

    def start(self, name: str, arg: Any, imported: dict[str, Any]) -> Any:
        """What an instruction loads with which a chain of attributes may begin."""
        if name in ("LOAD_GLOBAL", "LOAD_NAME"):
            space = self.function.__globals__
            return space.get(arg, imported.get(arg, vars(builtins).get(arg, UNKNOWN)))
        if "DEREF" in name and name.startswith("LOAD"):
            if arg == self.self_name:
                return SELF
            return imported.get(arg, self.cells.get(arg, UNKNOWN))
        if name.startswith("LOAD_FAST"):
            last = arg[-1] if isinstance(arg, tuple) else arg
            return SELF if last == self.self_name else imported.get(last, UNKNOWN)
        return UNKNOWN

    def attribute(self, value: Any, name: str) -> tuple[Any, type | None]:
        """value.name, and the class of the object if that is a method."""
        if value is SUPER and (self.owner is None or self.cells.get("__class__") not in self.owner.__mro__):
            value = UNKNOWN
        if value is UNKNOWN:
            self.attributes.add(name)
            return UNKNOWN, None
        if isinstance(value, ModuleType):
            inner = sys.modules.get(f"{value.__name__}.{name}", UNKNOWN)
            return vars(value).get(name, inner), None
        if value is SELF or value is SUPER:
            classes = self.owner.__mro__
            first = classes.index(self.cells["__class__"]) + 1 if value is SUPER else 0
            return self.method(classes[first:], self.owner, name)
        if isinstance(value, type):
            found = next((vars(base)[name] for base in value.__mro__ if name in vars(base)), UNKNOWN)
            if isinstance(found, (staticmethod, classmethod)):
                return found.__func__, value
            return found, value
        return self.method(type(value).__mro__, type(value), name)

    def method(self, classes: tuple[type, ...], owner: type, name: str) -> tuple[Any, type | None]:
        """The method, or what computes the property, as it stands in the first of `classes`."""
        for base in classes:
            if name in vars(base):
                found = vars(base)[name]
                if isinstance(found, (staticmethod, classmethod)):
                    return found.__func__, owner
                if isinstance(found, property):
                    return found.fget, owner
                return found, owner
        self.attributes.add(name)
        return UNKNOWN, None

    def module(self, name: str, level: Any, fromlist: Any) -> Any:
        """The module that an instruction imports, if it is imported already."""
        try:
            dots = "." * level if isinstance(level, int) else ""
            package = self.function.__globals__.get("__package__") or ""
            full = importlib.util.resolve_name(dots + name, package) if dots else name
        except (ImportError, ValueError):
            return UNKNOWN
        return sys.modules.get(full if fromlist else full.partition(".")[0], UNKNOWN)


def callables_in(value: Any, depth: int = 3) -> Iterator[Any]:
    """The callables in a table that a program keeps: in a dict, a list, an object, a compiled module."""
    if value is sys.modules or value is os.environ:
        return
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = list(value)
    elif isinstance(value, ModuleType):
        compiled = not str(getattr(value, "__file__", ".py")).endswith(".py")
        parts = list(vars(value).values()) if compiled else []
    elif is_standard(type(value).__module__):
        return
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    for part in parts[:MOST]:
        if callable(part):
            yield part
        elif depth:
            yield from callables_in(part, depth - 1)


def nested(code: CodeType) -> Iterator[CodeType]:
    """`code` and that of all functions that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def constructors(cls: type) -> list[Reference]:
    """The Python code that making an instance of `cls` runs."""
    found = [lookup(cls, name) for name in CONSTRUCTORS]
    found = [method.__func__ if isinstance(method, staticmethod) else method for method in found]
    made_by = lookup(type(cls), "__call__")
    called = [Reference(made_by, type(cls))] if type(made_by) is FunctionType else []
    return [*called, *[Reference(method, cls) for method in found if type(method) is FunctionType]]


def unbound(value: Any, owner: type | None) -> Reference:
    """A callable as what is looked up in the rulebook: wrappers that only hand on are taken off."""
    for _ in range(32):
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        elif type(value) is BuiltinFunctionType and not isinstance(
            value.__self__, (type, ModuleType, NoneType)
        ):
            owner = type(value.__self__)  # a C method bound to an object
            return Reference(lookup(owner, value.__name__) or value, owner)
        elif type(value) is MethodType:
            bound = value.__self__
            owner = bound if isinstance(bound, type) else type(bound)
            value = value.__func__
        else:
            break
    return Reference(value, owner)
