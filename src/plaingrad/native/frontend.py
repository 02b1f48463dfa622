"""Numba's front end: from a function and argument types to a `Program`. The only file that knows Numba's internals.

Numba decodes the bytecode, inlines closures, prunes branches, brings the program into SSA form and infers types, as
it does before it compiles; then its typed IR is taken, and the compilation stops there.
"""

from __future__ import annotations

import builtins
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import compiler, ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.dispatcher import LiftedCode
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.typed_passes import NopythonTypeInference
from numba.np.numpy_support import as_dtype

from plaingrad.errors import NativeError
from plaingrad.native.cleanup import without_cleanup
from plaingrad.native.helpers import trips
from plaingrad.native.structure import Graph, Irreducible, structured
from plaingrad.native.tree import (
    RESULT,
    Break,
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Program,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    breaks,
    operands,
    statements,
    with_inner,
)

SYMBOLS = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.pow: "**",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.matmul: "@",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lt: "<",
    operator.le: "<=",
    operator.eq: "==",
    operator.ne: "!=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.is_: "is",
    operator.is_not: "is not",
    operator.contains: "in",
    operator.neg: "-",
    operator.pos: "+",
    operator.invert: "~",
    operator.not_: "not",
}
STEPS_OF_ITERATION = ("iternext", "pair_first", "pair_second")
PURE = ("binary", "unary", "compare", "copy")
OVER_INDICES = (np.ndindex, np.ndenumerate)
UNSET = Var("unset")  # a variable that has no value yet
COMPARISONS = frozenset(("<", "<=", "==", "!=", ">", ">=", "is", "is not", "in"))


# options of a dispatcher that its numbers and exceptions depend on
OPTIONS = {"fastmath": False, "error_model": "python", "boundscheck": None}


# endings and beginnings of names that the transforms make, and that a user's variable must not have
RESERVED = re.compile(r"_(b|d|seed|p\d+|tape\d*)$|^exit_")


class _Taken(Exception):
    """Carries the typed IR out of Numba's pipeline."""


@register_pass(mutates_CFG=False, analysis_only=True)
class _TakeTypedIR(AnalysisPass):
    _name = "plaingrad_take_typed_ir"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        raise _Taken(state.func_ir, state.typemap, state.return_type)


class _FrontEnd(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_untyped_pipeline(self.state)
        passes.add_pass(NopythonTypeInference, "type inference")
        passes.add_pass(_TakeTypedIR, "take the typed IR")
        passes.finalize()
        return [passes]


def typed_ir(f: Callable[..., Any], signature: tuple[Any, ...]) -> tuple[Any, dict[str, Any], Any]:
    """(IR, type of every variable, type of the result) of the Python function `f` for these argument types."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    flags = compiler.Flags()
    flags.nrt = True
    try:
        compiler.compile_extra(
            cpu_target.typing_context,
            cpu_target.target_context,
            f,
            signature,
            None,
            flags,
            {},
            pipeline_class=_FrontEnd,
        )
    except _Taken as taken:
        return taken.args
    except Exception as error:  # Numba's own, or what its passes stumble over: assertions, TypeError, ...
        raise _not_compiled(f, signature, error) from error
    raise AssertionError("the front end did not stop")


def _not_compiled(f: Any, signature: tuple[Any, ...], error: Exception) -> NativeError:
    code = getattr(f, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return NativeError(
        f"Numba cannot compile `{getattr(f, '__qualname__', f)}`{where} for ({', '.join(map(str, signature))}):\n"
        f"  {str(error).strip()}\n  To go on: tier='plain' differentiates it as it is.\n  See docs: errors#native"
    )


def reached_from(f: Any) -> list[Any]:
    """The dispatchers that a Python function calls by a global or captured name, and those that they call."""
    found: list[Any] = []
    todo = [f]
    while todo:
        g = todo.pop()
        named = [g.__globals__.get(name) for code in _codes(g.__code__) for name in code.co_names]
        named += [_content(c) for c in g.__closure__ or ()]
        for other in named:
            if is_dispatcher(other) and not any(other is known for known in found):
                found.append(other)
                todo.append(other.py_func)
    return found


def python_function(f: Any) -> Callable[..., Any]:
    """The Python function behind a Numba dispatcher, or `f` itself."""
    return getattr(f, "py_func", f)


def with_compiled_callees(f: FunctionType) -> FunctionType:
    """`f` with the plain Python functions that it calls by a global or captured name made dispatchers."""
    return python_function(dispatcher_of(f))  # type: ignore[return-value]


_dispatchers: dict[FunctionType, Any] = {}


def dispatcher_of(f: FunctionType) -> Any:
    """The dispatcher of a plain Python function, with those that it calls compiled along; itself too."""
    found = _dispatchers.get(f)
    if found is not None:
        return found
    space = f.__globals__
    names = {name for code in _codes(f.__code__) for name in code.co_names if is_plain(space.get(name))}
    cells = [c for c in f.__closure__ or () if is_plain(_content(c))]
    new = f
    if names or cells:
        closure = tuple([CellType() if any(c is d for d in cells) else c for c in f.__closure__ or ()])
        new = FunctionType(f.__code__, dict(space), f.__name__, f.__defaults__, closure or None)
        new.__kwdefaults__ = f.__kwdefaults__
        new.__module__, new.__qualname__ = f.__module__, f.__qualname__
    if len(_dispatchers) > 4096:
        _dispatchers.clear()
    found = _dispatchers[f] = _dispatchers[new] = _jitted(new)  # before its callees, which may call it
    for name in names:
        new.__globals__[name] = dispatcher_of(space[name])
    for old, cell in zip(f.__closure__ or (), new.__closure__ or (), strict=True):
        if old is not cell:
            cell.cell_contents = dispatcher_of(old.cell_contents)
    return found


def _jitted(f: FunctionType) -> Any:
    """numba.njit(f), with NUMBA_DISABLE_JIT too: the types of what it returns are asked for, then CPython runs it."""
    return CPUDispatcher(py_func=f, targetoptions={"nopython": True})


def _codes(code: Any) -> Iterator[Any]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, type(code)):
            yield from _codes(inner)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


LIBRARIES = ("numpy", "numba", "math", "scipy", "plaingrad.native", "plaingrad.rules")


def is_plain(f: Any) -> bool:
    """Whether `f` is somebody's Python function, not a library's."""
    if not isinstance(f, FunctionType):
        return False
    return not str(f.__module__).startswith(LIBRARIES)


def type_of_value(value: Any) -> Any:
    """The Numba type of a constant, or of a module."""
    return types.Module(value) if isinstance(value, ModuleType) else numba.typeof(value)


def settled(t: Any) -> Any:
    """A type as a function is compiled for it: of a number, not of this number."""
    return t if isinstance(t, types.LiteralStrKeyDict) else types.unliteral(t)


def options_of(f: Any) -> dict[str, Any]:
    """Of the options of a dispatcher, those that its numbers and exceptions depend on and that are not as usual."""
    given = getattr(f, "targetoptions", {})
    return {k: given[k] for k, usual in OPTIONS.items() if given.get(k) and given[k] != usual}


def is_dispatcher(f: Any) -> bool:
    """Whether `f` was made by `numba.njit`."""
    return isinstance(getattr(f, "py_func", None), FunctionType) and hasattr(f, "targetoptions")


def program(f: Any, signature: tuple[Any, ...]) -> Program:
    """`f`, a Python function or dispatcher, as a `Program` for these argument types.

    Raises:
        NativeError: Numba cannot type it, or it uses something that cannot be differentiated natively.
    """
    function, func_ir, typemap, result = _with_typed_ir(f, signature)
    made = _Translator(function, func_ir, typemap, result).program()
    made.function = f
    return made


def _with_typed_ir(f: Any, signature: tuple[Any, ...]) -> tuple[FunctionType, Any, dict[str, Any], Any]:
    """(the Python function of `f`, its callees compiled; the three of `typed_ir`)."""
    function = with_compiled_callees(python_function(f))  # type: ignore[arg-type]
    for other in reached_from(function):
        if other.py_func.__code__ is function.__code__:
            try:  # Numba's type inference of a recursive function wants it begun already
                other.compile(signature)
            except Exception as error:
                raise _not_compiled(function, signature, error) from error
    return function, *typed_ir(function, signature)


class _Translator:
    """From Numba's IR to a tree: constants and modules folded, phis made moves, iterators made counted loops."""

    def __init__(self, function: Any, func_ir: Any, typemap: dict[str, Any], result: Any) -> None:
        self.function = function
        self.ir = func_ir
        self.typemap = typemap
        self.result = result
        self.known: dict[str, Any] = {}  # name of a variable -> the operand it stands for
        self.names: dict[str, str] = {}
        self.nice: dict[str, str] = {}  # a nameless variable -> the user's name for it
        self.types: dict[str, Any] = {}
        self.tests: set[str] = set()  # variables that branches test
        self.iterators: dict[str, Any] = {}  # iterator variable -> what is iterated over
        self.line = func_ir.loc.line
        self.target = ""  # of the current assignment, in the IR
        self.taken: set[str] = set()  # names of the tree
        self.suffixes: dict[str, int] = {}  # the next number to try behind a name
        self.reads: Counter[str] = Counter()  # how often each is read

    # -- refusals --------------------------------------------------------------------------------------------------

    def refuse(self, what: str) -> NativeError:
        """The error that says that `what`, on the current line, cannot be done natively."""
        return NativeError(
            f"{what} at {self.function.__code__.co_filename}:{self.line}, in `{self.function.__name__}`, cannot be "
            "differentiated natively.\n  To go on: tier='plain' differentiates it as it is.\n"
            "  See docs: errors#native"
        )

    # -- the whole -------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        blocks = without_cleanup(self.ir.blocks)
        body: dict[Any, list[Stmt]] = {}
        successors: dict[Any, tuple[Any, ...]] = {}
        test: dict[Any, Operand] = {}
        lines: dict[Any, int] = {}
        moves: dict[tuple[Any, Any], list[Stmt]] = {}
        phis: dict[Any, list[Any]] = {}
        for name in self.ir.arg_names:
            t = self.typemap.get(f"arg.{name}")
            if isinstance(t, types.Module):  # what a partial derivative of a row computes with
                self.known[f"arg.{name}"] = Ref(t.pymod, name)
        self.tests = {end.cond.name for b in blocks.values() if isinstance(end := b.terminator, ir.Branch)}
        for label in sorted(blocks):
            for s in blocks[label].body:
                if isinstance(s, ir.Assign):
                    self._note(s)
        params = [self.name(f"arg.{name}") for name in self.ir.arg_names]
        for param, name in zip(params, self.ir.arg_names, strict=True):
            t = self.types[param] = self.typemap[f"arg.{name}"]
            if isinstance(t, types.Dispatcher):
                self.known[f"arg.{name}"] = Ref(t.dispatcher, name)
        for label, block in sorted(blocks.items()):
            out: list[Stmt] = []
            for s in block.body[:-1] if block.is_terminated else block.body:
                self.line = s.loc.line
                if isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "phi":
                    phis.setdefault(label, []).append(s)
                else:
                    out += self.statement(s)
            end = block.terminator
            self.line = lines[label] = end.loc.line
            if isinstance(end, ir.Jump):
                successors[label] = (end.target,)
            elif isinstance(end, ir.Branch):
                successors[label] = (end.truebr, end.falsebr)
                test[label] = self.operand(end.cond)
            elif isinstance(end, ir.Return):
                out.append(Let(RESULT, "copy", (self.operand(end.value),), None, self.line))
                successors[label] = ()
            elif isinstance(end, (ir.StaticRaise, ir.Raise, ir.DynamicRaise)):
                out.append(self._raise(end))
                successors[label] = ()
            else:
                raise self.refuse(f"`{end}`")
            body[label] = out
        for label, found in phis.items():
            for source in {b for phi in found for b in phi.value.incoming_blocks}:
                moves[source, label] = self._moves(found, source)
        try:
            tree = structured(Graph(min(blocks), body, successors, test, moves, lines))
        except Irreducible:
            raise self.refuse("a loop with two entries") from None
        for name, t in self.typemap.items():
            if not name.startswith("arg."):
                self.types.setdefault(self.name(name), t)
        for s in statements(tree):
            if isinstance(s, Let) and s.target.startswith("exit_"):
                self.types[s.target] = types.boolean if s.op == "compare" else types.int64
        tree = self.counted(tree)
        if UNSET in self.known.values():
            tree = _without_moves_of_nothing(tree, set(params))
        self._check(tree, params)
        self.types[RESULT] = self.result
        used = {a.name for s in statements(tree) for a in operands(s) if isinstance(a, Var)}
        used |= {s.target for s in statements(tree) if isinstance(s, (Let, For))} | set(params) | {RESULT}
        kept = {name: t for name, t in self.types.items() if name in used}
        code = self.function.__code__
        name = self.function.__name__
        name = name if name.isidentifier() else "function"
        return Program(name, code.co_filename, params, tree, kept, self.result)

    def _check(self, tree: list[Stmt], params: list[str]) -> None:
        """Refuse iterators that are left: those of loops are gone, and so is what made them."""
        assigned = {s.target for s in statements(tree) if isinstance(s, (Let, For))} | set(params)
        for s in statements(tree):
            lost = any(isinstance(a, Var) and a.name not in assigned for a in operands(s))
            if lost or (isinstance(s, Let) and s.op in ("getiter", "iternext", "pair_first", "pair_second")):
                self.line = s.line
                raise self.refuse("this iteration")

    def _moves(self, phis: list[Any], source: Any) -> list[Stmt]:
        """What the phis of a block take on the way from `source`: parallel moves, with copies where they cross."""
        pairs = []
        for phi in phis:
            where = [k for k, b in enumerate(phi.value.incoming_blocks) if b == source]
            value = phi.value.incoming_values[where[0]]
            if value is ir.UNDEFINED or not isinstance(value, ir.Var):
                continue
            taken = self.operand(value)
            target = self.name(phi.target.name)
            if taken != Var(target):
                pairs.append((target, taken, phi.loc.line))
        targets = {target for target, _, _ in pairs}
        out: list[Stmt] = []
        later: list[Stmt] = []
        for k, (target, taken, line) in enumerate(pairs):
            crossing = (
                isinstance(taken, Var)
                and taken.name in targets
                and any(earlier == taken.name for earlier, _, _ in pairs[:k])
            )
            if crossing:
                self.types[target] = self._type_of(target)
                held = self._fresh("held", self.types[target])
                out.insert(0, Let(held, "copy", (taken,), None, line))
                taken = Var(held)
            later.append(Let(target, "copy", (taken,), None, line))
        return out + later

    def _type_of(self, target: str) -> Any:
        for name, mine in self.names.items():
            if mine == target:
                return self.typemap[name]
        raise KeyError(target)

    # -- names and operands ----------------------------------------------------------------------------------------

    def name(self, name: str) -> str:
        """A Python identifier for a variable of the IR; the user's own names stay readable."""
        mine = self.names.get(name)
        if mine is None:
            base = name[4:] if name.startswith("arg.") else name
            if base.startswith("$"):
                base = self.nice.get(name, "t")
            base = "".join(c if c.isalnum() or c == "_" else "_" for c in base) or "t"
            if base[0].isdigit() or base == RESULT:
                base = "v_" + base
            if RESERVED.search(base) or hasattr(builtins, base):
                base += "_"
            mine = self.names[name] = self._unused(base)
        return mine

    def operand(self, v: Any) -> Operand:
        """What a variable of the IR stands for."""
        seen = v.name
        while isinstance(self.known.get(seen), str):
            seen = self.known[seen]
        found = self.known.get(seen)
        return Var(self.name(seen)) if found is None else found

    def _note(self, s: Any) -> None:
        """Remember variables that are another name for a constant, an object outside, or another variable."""
        name, value = s.target.name, s.value
        if isinstance(value, ir.Const):
            self.known[name] = Const(value.value)
        elif isinstance(value, (ir.Global, ir.FreeVar)):
            self.known[name] = constant(value.value, value.name)
        elif isinstance(value, ir.Var):
            self.known[name] = value.name
            if value.name.startswith("$") and not name.startswith("$"):
                self.nice.setdefault(value.name, name)
        elif isinstance(value, ir.Arg):
            self.known[name] = f"arg.{value.name}"
            self.typemap.setdefault(f"arg.{value.name}", self.typemap[name])
        elif isinstance(value, ir.Expr):
            if value.op in ("cast", "exhaust_iter"):
                self.known[name] = value.value.name
            elif value.op == "undef":  # CPython 3.12+: what a comprehension's variable was before it
                self.known[name] = UNSET
            elif value.op == "getattr":
                owner = self.operand(value.value)
                if isinstance(owner, Ref) and isinstance(owner.value, ModuleType):
                    self.known[name] = constant(getattr(owner.value, value.attr), value.attr)
            elif value.op == "call" and self.operand(value.func) == Const(bool) and value.args:
                given = value.args[0].name
                if name in self.tests or isinstance(self.typemap[given], types.Boolean):
                    self.known[name] = given  # elsewhere it is a number of its own: bool(x) * x
            elif value.op == "inplace_binop" and isinstance(self.typemap[value.lhs.name], types.Array):
                self.known[name] = value.lhs.name

    # -- statements ------------------------------------------------------------------------------------------------

    def statement(self, s: Any) -> list[Stmt]:
        line = s.loc.line
        if isinstance(s, ir.Assign):
            return self._assign(s, line)
        if isinstance(s, ir.SetItem):
            return [Store(self.operand(s.target), self.operand(s.index), self.operand(s.value), line)]
        if isinstance(s, ir.StaticSetItem):
            index = self.operand(s.index_var) if s.index_var is not None else constant(s.index, "index")
            return [Store(self.operand(s.target), index, self.operand(s.value), line)]
        if isinstance(s, ir.Del):
            return []
        if isinstance(s, ir.Print):
            args = (Const(print), *[self.operand(a) for a in s.args])
            return [Do(Let("_", "call", args, (), line), line)]
        raise self.refuse(f"`{type(s).__name__.lower()}`")

    def _assign(self, s: Any, line: int) -> list[Stmt]:
        target, value = s.target.name, s.value
        if isinstance(value, ir.Expr) and value.op == "inplace_binop" and target in self.known:
            symbol = SYMBOLS[value.immutable_fn]
            return [InPlace(self.operand(value.lhs), symbol, self.operand(value.rhs), line)]
        if target in self.known or isinstance(self.typemap[target], types.ExceptionInstance):
            return []
        if not isinstance(value, ir.Expr):
            raise self.refuse(f"`{type(value).__name__}`")
        op = value.op
        name, self.target = self.name(target), target

        def make(kind: str, args: Any, detail: Any = None) -> list[Stmt]:
            return [Let(name, kind, tuple(args), detail, line)]

        if op in ("binop", "inplace_binop"):
            symbol = SYMBOLS[value.immutable_fn if op == "inplace_binop" else value.fn]
            args = (self.operand(value.lhs), self.operand(value.rhs))
            truths = [x for x in args if isinstance(x, Const) and isinstance(x.value, bool)]
            if symbol in ("is", "is not") and truths:
                # a bool that was kept is NumPy's, when CPython runs the derived program
                symbol = "==" if symbol == "is" else "!="
            return make("compare" if symbol in COMPARISONS else "binary", args, symbol)
        if op == "unary":
            return make("unary", (self.operand(value.value),), SYMBOLS[value.fn])
        if op == "getitem":
            return make("item", (self.operand(value.value), self.operand(value.index)))
        if op in ("static_getitem", "typed_getitem"):
            index = (
                self.operand(value.index_var)
                if value.index_var is not None
                else constant(value.index, "index")
            )
            return make("item", (self.operand(value.value), index))
        if op == "getattr":
            return self._attribute(name, value, line)
        if op == "build_tuple":
            return make("tuple", map(self.operand, value.items))
        if op == "build_map" and isinstance(self.typemap[target], types.LiteralStrKeyDict):
            return make("tuple", [self.operand(v) for _, v in value.items])
        if op == "build_list":
            return make("list", map(self.operand, value.items))
        if op == "call":
            if _name(self.operand(value.func)) == "empty_inferred":  # the array of a comprehension
                dtype = as_dtype(self.typemap[target].dtype).type
                args = (Ref(np.empty, "empty"), self.operand(value.args[0]), Ref(dtype, dtype.__name__))
                return make("call", args, ())
            return self._call(name, value, line)
        if op in ("getiter", "iternext", "pair_first", "pair_second"):
            return make(op, (self.operand(value.value),))
        raise self.refuse({"build_map": "a dictionary", "build_set": "a set"}.get(op, f"`{op}`"))

    def _attribute(self, name: str, value: Any, line: int) -> list[Stmt]:
        t = self.typemap[value.value.name]
        if isinstance(t, types.Array) and value.attr == "flat":
            if t.layout != "C":
                raise self.refuse("`.flat` of an array that is not contiguous")
            self.types[name] = types.Array(t.dtype, 1, "C", readonly=not t.mutable)
            return [Let(name, "method", (self.operand(value.value),), ("ravel", ()), line)]
        if isinstance(self.typemap.get(value.value.name), types.Module):
            raise self.refuse(f"`.{value.attr}`")
        self.iterators.pop(name, None)
        return (
            [Let(name, "attribute", (self.operand(value.value),), value.attr, line)] if t is not None else []
        )

    def _call(self, name: str, value: Any, line: int) -> list[Stmt]:
        if value.varkwarg is not None:
            raise self.refuse("a call with **arguments")
        args = [self.operand(a) for a in value.args]
        setup: list[Stmt] = []
        if value.vararg is not None:
            rest = self.operand(value.vararg)
            for k, t in enumerate(self.typemap[value.vararg.name]):
                part = self._fresh("part", t)
                setup.append(Let(part, "item", (rest, Const(k)), None, line))
                args.append(Var(part))
        keywords = tuple(key for key, _ in value.kws)
        args += [self.operand(a) for _, a in value.kws]
        callee = self.operand(value.func)
        if isinstance(_value(callee), LiftedCode):
            raise self.refuse("`with objmode`")
        if _name(callee) == "mark_try_block":
            raise self.refuse("`try`")
        if callee == Const(divmod):
            parts = [self._fresh("part", t) for t in self.typemap[self.target]]
            symbols = zip(parts, ("//", "%"), strict=True)
            setup += [Let(part, "binary", tuple(args), symbol, line) for part, symbol in symbols]
            return [*setup, Let(name, "tuple", tuple(map(Var, parts)), None, line)]
        if callee == Const(slice):
            return [*setup, Let(name, "slice", tuple(args), None, line)]
        return [*setup, Let(name, "call", (callee, *args), keywords, line)]

    def _raise(self, end: Any) -> Raise:
        if isinstance(end, (ir.StaticRaise, ir.DynamicRaise)):
            given = end.exc_args or ()
            args = tuple(self.operand(a) if isinstance(a, ir.Var) else Const(a) for a in given)
            return Raise(end.exc_class or RuntimeError, args, end.loc.line)
        found = self.ir.get_definition(end.exception)
        if isinstance(found, ir.Expr) and found.op == "call":
            cls = self.operand(found.func)
            return Raise(cls.value, tuple(map(self.operand, found.args)), end.loc.line)
        cls = self.operand(end.exception)
        if isinstance(cls, (Ref, Const)):
            return Raise(cls.value, (), end.loc.line)
        raise self.refuse("this raise")

    # -- loops -----------------------------------------------------------------------------------------------------

    def counted(self, body: list[Stmt]) -> list[Stmt]:
        """`body` with iteration over ranges, arrays and tuples made counted loops, and methods made "method"s."""
        definitions = {s.target: s for s in statements(body) if isinstance(s, Let)}
        body = self._with_methods(body, definitions)
        definitions = {s.target: s for s in statements(body) if isinstance(s, Let)}
        self.reads = Counter(a.name for s in statements(body) for a in operands(s) if isinstance(a, Var))
        return self._counted(body, definitions)

    def _with_methods(self, body: list[Stmt], definitions: dict[str, Let]) -> list[Stmt]:
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, Let) and s.op == "call" and isinstance(s.args[0], Var):
                found = definitions.get(s.args[0].name)
                if found is None or found.op != "attribute":
                    self.line = s.line
                    raise self.refuse("a call of a function that is computed")
                owner = found.args[0]
                if found.detail == "conjugate" and isinstance(
                    self.types_of(getattr(owner, "name", "")), types.Complex
                ):
                    s = Let(s.target, "call", (Ref(np.conj, "conj"), owner), (), s.line)
                else:
                    s = Let(s.target, "method", (owner, *s.args[1:]), (found.detail, s.detail), s.line)
            elif (
                isinstance(s, Let)
                and s.op == "attribute"
                and isinstance(self.types_of(s.target), types.BoundFunction)
            ):
                continue
            elif isinstance(s, If):
                then, orelse = (
                    self._with_methods(s.then, definitions),
                    self._with_methods(s.orelse, definitions),
                )
                s = If(s.test, then, orelse, s.line)
            elif isinstance(s, Loop):
                s = Loop(self._with_methods(s.body, definitions), s.line)
            out.append(s)
        return out

    def types_of(self, name: str) -> Any:
        """The Numba type of a variable of the tree."""
        return self.types.get(name)

    def _counted(self, body: list[Stmt], definitions: dict[str, Let]) -> list[Stmt]:
        out: list[Stmt] = []
        if any(isinstance(s, Let) and s.op == "iternext" for s in body):
            body = self._begun_once(body, definitions)
        for s in body:
            if isinstance(s, If):
                s = If(
                    s.test, self._counted(s.then, definitions), self._counted(s.orelse, definitions), s.line
                )
            elif isinstance(s, Loop):
                out += self._loop(s, definitions)
                continue
            elif isinstance(s, Let) and self._only_iterates(s):
                continue
            elif isinstance(s, Let) and s.op == "call" and _name(s.args[0]) == "length_of_iterator":
                _, setup, bounds, _ = self._iterated(s.args[1], None, definitions)
                out += [*setup, Let(s.target, "call", (Ref(trips, "trips"), *bounds), (), s.line)]
                continue
            out.append(s)
        return out

    def _begun_once(self, body: list[Stmt], definitions: dict[str, Let]) -> list[Stmt]:
        """`body` of which a part is a `for` loop whose body always leaves it: it runs once, if there are items."""
        parts = {s.op: s for s in body if isinstance(s, Let) and s.op in STEPS_OF_ITERATION}
        test = parts["pair_second"].target
        out: list[Stmt] = []
        bind: list[Stmt] = []
        for s in body:
            if isinstance(s, Let) and s.op == "iternext":
                self.line = s.line
                item = parts["pair_first"].target if "pair_first" in parts else None
                k, setup, bounds, more = self._iterated(s.args[0], item, definitions)
                bind = [Let(k, "copy", bounds[:1], None, s.line), *more]
                n = self._fresh("n", types.int64)
                out += [*setup, Let(n, "call", (Ref(trips, "trips"), *bounds), (), s.line)]
                out.append(Let(test, "compare", (Const(0), Var(n)), "<", s.line))
            elif isinstance(s, If) and s.test == Var(test):
                out.append(If(s.test, [*bind, *s.then], s.orelse, s.line))
            elif not (isinstance(s, Let) and s.op in STEPS_OF_ITERATION):
                out.append(s)
        return out

    def _only_iterates(self, s: Let) -> bool:
        """Whether a statement makes what a counted loop has made superfluous: a range, an iterator."""
        if s.op == "copy" or (s.op == "call" and s.args[0] in (Const(enumerate), Const(zip))):
            return isinstance(self.types_of(s.target), types.IteratorType)
        made = _value(s.args[0]) if s.op == "call" else None
        return s.op == "getiter" or made is range or made in OVER_INDICES

    def _loop(self, loop: Loop, definitions: dict[str, Let]) -> list[Stmt]:
        parts = {s.op: s for s in loop.body if isinstance(s, Let) and s.op in STEPS_OF_ITERATION}
        if "iternext" not in parts:
            return [Loop(self._counted(loop.body, definitions), loop.line)]
        self.line = loop.line
        rest = [s for s in loop.body if s not in parts.values()]
        last = rest[-1] if rest else None
        if not (
            isinstance(last, If)
            and last.test == Var(parts["pair_second"].target)
            and _ends_in_break(last.orelse)
        ):
            raise self.refuse("this loop")
        sunk = rest[:-1]
        if sunk and not self._may_sink(sunk, last.then):
            return self._general(loop, parts, definitions)
        item = parts["pair_first"].target if "pair_first" in parts else None
        self._refuse_changes_of_lists(parts["iternext"].args[0], last.then, definitions)
        inner = self._counted([*sunk, *last.then], definitions)
        target, setup, (start, stop, step), bind = self._iterated(
            parts["iternext"].args[0], item, definitions
        )
        after = last.orelse[:-1]
        inner = [*bind, *inner]
        if after and breaks(inner):
            flag, other = self._fresh("broke", types.boolean), self._fresh("finished", types.boolean)
            inner = _flagged(inner, flag)
            return [
                *setup,
                Let(flag, "copy", (Const(False),), None, loop.line),
                For(target, start, stop, step, inner, loop.line),
                Let(other, "unary", (Var(flag),), "not", loop.line),
                If(Var(other), self._counted(after, definitions), [], loop.line),
            ]
        return [*setup, For(target, start, stop, step, inner, loop.line), *self._counted(after, definitions)]

    def _refuse_changes_of_lists(
        self, iterator: Operand, body: list[Stmt], definitions: dict[str, Let]
    ) -> None:
        """Refuse a loop over a list that its body changes: the number of iterations is taken at its start."""
        under, seen, lists = [iterator], set(), set()
        while under:
            a = under.pop()
            if a in seen:  # variables that change names in a loop
                continue
            seen.add(a)
            t = self.types_of(a.name) if isinstance(a, Var) else None
            made = definitions.get(a.name) if isinstance(a, Var) else None
            if isinstance(t, types.List):
                lists.add(a)
            elif made is not None and (made.op in ("copy", "getiter") or isinstance(t, types.IteratorType)):
                under += made.args
        for s in statements(body):
            call = s.call if isinstance(s, Do) else s
            if isinstance(call, Let) and call.op in ("call", "method") and lists & set(call.args):
                if not isinstance(call.args[0], Const):
                    self.line = s.line
                    raise self.refuse("a change of a list inside a loop over it")

    def _may_sink(self, before: list[Stmt], then: list[Stmt]) -> bool:
        """Whether statements before the test of a loop may as well stand behind it, at the top of the body."""
        inside = Counter(
            a.name for s in statements([*before, *then]) for a in operands(s) if isinstance(a, Var)
        )
        return all(
            isinstance(s, Let) and s.op in PURE and self.reads[s.target] == inside[s.target] for s in before
        )

    def _general(self, loop: Loop, parts: dict[str, Let], definitions: dict[str, Let]) -> list[Stmt]:
        """A `for` loop with statements before its test, which run once more than its body: it counts for itself."""
        item = parts["pair_first"].target if "pair_first" in parts else None
        k, setup, (start, stop, step), bind = self._iterated(parts["iternext"].args[0], item, definitions)
        n, count, up = (self._fresh(name, types.int64) for name in ("n", "count", "up"))
        shift = self._fresh("shift", types.int64)
        line = loop.line
        test = Let(parts["pair_second"].target, "compare", (Var(count), Var(n)), "<", line)
        body: list[Stmt] = [test]
        for s in loop.body:
            if isinstance(s, If) and s.test == Var(test.target):
                top = [
                    Let(shift, "binary", (Var(count), step), "*", line),
                    Let(k, "binary", (start, Var(shift)), "+", line),
                    *bind,
                    Let(up, "binary", (Var(count), Const(1)), "+", line),
                    Let(count, "copy", (Var(up),), None, line),
                ]
                s = If(s.test, [*top, *s.then], s.orelse, s.line)
            elif s in parts.values():
                continue
            body.append(s)
        return [
            *setup,
            Let(n, "call", (Ref(trips, "trips"), start, stop, step), (), line),
            Let(count, "copy", (Const(0),), None, line),
            Loop(self._counted(body, definitions), line),
        ]

    def _iterated(self, iterator: Operand, item: str | None, definitions: dict[str, Let]) -> Any:
        """(loop variable, statements before, (start, stop, step), statements at the top of the body)."""
        found = definitions[iterator.name] if isinstance(iterator, Var) else None
        while found is not None and found.op in ("copy", "getiter"):
            source = found.args[0]
            if found.op == "getiter":
                made = definitions.get(source.name) if isinstance(source, Var) else None
                if made is not None and made.op == "call" and made.args[0] == Const(range):
                    bounds = made.args[1:]
                    zero, one = Const(0), Const(1)
                    full = {1: (zero, *bounds, one), 2: (*bounds, one), 3: bounds}[len(bounds)]
                    name = item or self._fresh("k", types.int64)
                    return name, [], full, []
                if made is not None and made.op == "call" and isinstance(made.args[0], Const):
                    return self._over_pairs(made, item)
                if made is not None and made.op == "call" and _value(made.args[0]) in OVER_INDICES:
                    return self._over_indices(made, item)
                return self._over_items(source, item)
            found = definitions.get(source.name) if isinstance(source, Var) else None
        raise self.refuse("this iteration")

    def _over_items(self, source: Operand, item: str | None) -> Any:
        t = self.types_of(source.name) if isinstance(source, Var) else None
        if not isinstance(t, (types.Array, types.UniTuple, types.List)):
            raise self.refuse(f"iteration over {t}")
        k, n = self._fresh("k", types.int64), self._fresh("n", types.int64)
        setup = [Let(n, "call", (Const(len), source), (), self.line)]
        bind = [Let(item, "item", (source, Var(k)), None, self.line)] if item else []
        return k, setup, (Const(0), Var(n), Const(1)), bind

    def _over_indices(self, made: Let, item: str | None) -> Any:
        """np.ndindex(shape) or np.ndindex(n, ...), and np.ndenumerate(array): the last index runs fastest."""
        line = self.line
        setup: list[Stmt] = []
        array = made.args[1] if _value(made.args[0]) is np.ndenumerate else None
        given = made.args[1]
        if array is not None:
            shape = self._fresh("shape", types.UniTuple(types.int64, self.types_of(array.name).ndim))
            setup.append(Let(shape, "attribute", (array,), "shape", line))
            given = Var(shape)
        t: Any = self.types_of(given.name) if isinstance(given, Var) else None
        dims: list[Operand] = list(made.args[1:])
        if isinstance(t, types.BaseTuple):
            dims = [Var(self._fresh("n", types.int64)) for _ in range(t.count)]
            setup += [Let(d.name, "item", (given, Const(k)), None, line) for k, d in enumerate(dims)]
        n: Operand = Const(1)
        for d in dims:
            size = self._fresh("size", types.int64)
            setup.append(Let(size, "binary", (n, d), "*", line))
            n = Var(size)
        k = self._fresh("k", types.int64)
        bind: list[Stmt] = []
        rest: Operand = Var(k)
        places: list[Operand] = []
        for d in reversed(dims):
            place, left = self._fresh("at", types.int64), self._fresh("left", types.int64)
            bind.append(Let(place, "binary", (rest, d), "%", line))
            bind.append(Let(left, "binary", (rest, d), "//", line))
            places.insert(0, Var(place))
            rest = Var(left)
        if item and array is None:
            bind.append(Let(item, "tuple", tuple(places), None, line))
        elif item:
            where, value = self._fresh("where", types.UniTuple(types.int64, len(dims))), self._fresh("part")
            self.types[value] = self.types_of(array.name).dtype
            bind.append(Let(where, "tuple", tuple(places), None, line))
            bind.append(Let(value, "item", (array, Var(where)), None, line))
            bind.append(Let(item, "tuple", (Var(where), Var(value)), None, line))
        return k, setup, (Const(0), n, Const(1)), bind

    def _over_pairs(self, made: Let, item: str | None) -> Any:
        """enumerate(items[, start]) and zip(items, ...)."""
        sources = list(made.args[1:])
        shift: Operand = Const(0)
        counting = made.args[0] == Const(enumerate)
        if counting and len(sources) == 2:
            shift = sources.pop()
        if made.args[0] not in (Const(enumerate), Const(zip)) or not sources:
            raise self.refuse("this iteration")
        k, setup, (start, stop, step), bind = self._over_items(sources[0], self._fresh("part"))
        parts = [Var(s.target) for s in bind]
        if counting:
            place = self._fresh("at", types.int64)
            bind.append(Let(place, "binary", (Var(k), shift), "+", self.line))
            parts.insert(0, Var(place))
        for source in sources[1:]:
            _, more, (_, end, _), (other,) = self._over_items(source, self._fresh("part"))
            shorter = self._fresh("n", types.int64)
            setup += [*more, Let(shorter, "call", (Const(min), stop, end), (), self.line)]
            stop = Var(shorter)
            bind.append(Let(other.target, "item", (source, Var(k)), None, self.line))
            parts.append(Var(other.target))
        for s in bind:
            if s.op == "item":
                self.types[s.target] = item_type(self.types_of(s.args[0].name))
        if item:
            bind.append(Let(item, "tuple", tuple(parts), None, self.line))
        return k, setup, (start, stop, step), bind

    def _fresh(self, base: str, t: Any = None) -> str:
        name = self._unused(base)
        self.types[name] = t
        return name

    def _unused(self, base: str) -> str:
        name, n = base, self.suffixes.get(base, 1)
        while name in self.taken:
            name = f"{base}_{n}"
            n += 1
        self.suffixes[base] = n
        self.taken.add(name)
        return name


def item_type(t: Any) -> Any:
    """The type of an item of an array or tuple."""
    if isinstance(t, types.Array):
        return t.dtype if t.ndim == 1 else t.copy(ndim=t.ndim - 1, layout="C" if t.layout == "C" else "A")
    return t.dtype


def constant(value: Any, name: str) -> Operand:
    """An object outside the program: a constant if it prints itself, else a reference."""
    if value is numba.prange:
        return Const(range)  # the derivative is serial
    if value is None or type(value) in (int, float, complex, bool, str):
        return Const(value)
    if isinstance(value, type) or callable(value):
        if getattr(builtins, getattr(value, "__name__", ""), None) is value:
            return Const(value)
    return Ref(value, name)


def _value(a: Operand) -> Any:
    return None if isinstance(a, Var) else a.value


def _name(a: Operand) -> str | None:
    return getattr(_value(a), "__name__", None)


def _without_moves_of_nothing(tree: list[Stmt], params: set[str]) -> list[Stmt]:
    """`tree` without copies of variables that never get a value."""
    before = -1
    while before != (before := sum(1 for _ in statements(tree))):
        tree = _without_copies(
            tree, {s.target for s in statements(tree) if isinstance(s, (Let, For))} | params
        )
    return tree


def _without_copies(body: list[Stmt], assigned: set[str]) -> list[Stmt]:
    """`body` without copies of variables that are not among `assigned`."""
    return [
        with_inner(s, lambda inner: _without_copies(inner, assigned))
        for s in body
        if not (
            isinstance(s, Let)
            and s.op == "copy"
            and isinstance(s.args[0], Var)
            and s.args[0].name not in assigned
        )
    ]


def _ends_in_break(body: list[Stmt]) -> bool:
    return bool(body) and isinstance(body[-1], Break)


def _flagged(body: list[Stmt], flag: str) -> list[Stmt]:
    """`body` that sets `flag` before it leaves its loop."""
    if not body:
        return body
    last = body[-1]
    if isinstance(last, Break):
        return [*body[:-1], Let(flag, "copy", (Const(True),), None, last.line), last]
    if isinstance(last, If):
        return [*body[:-1], If(last.test, _flagged(last.then, flag), _flagged(last.orelse, flag), last.line)]
    return body


def listing(f: Callable[..., Any], signature: tuple[Any, ...]) -> str:
    """The typed IR of `f` as text: block by block, with the types of variables and the lines of `f`."""
    _, typed, kinds, _ = _with_typed_ir(f, signature)
    lines, last = [], 0
    for label, block in sorted(typed.blocks.items()):
        lines.append(f"block {label}:")
        for statement in block.body:
            text = str(statement)
            if isinstance(statement, ir.Assign):
                kind = kinds.get(statement.target.name)
                shown = "" if isinstance(kind, (types.Callable, types.Module)) else f": {kind}"
                text = f"{statement.target.name}{shown} = {_value_text(statement.value)}"
            mark = f"  # line {statement.loc.line}" if statement.loc.line != last else ""
            last = statement.loc.line
            lines.append(f"    {text}{mark}")
    return "\n".join(lines) + "\n"


def _value_text(value: Any) -> str:
    """The right-hand side of an assignment of the IR, without what Numba repeats."""
    if isinstance(value, (ir.Global, ir.FreeVar)):
        return f"global {value.name}"
    if isinstance(value, ir.Expr) and value.op == "call":
        named = [f"{name}={x.name}" for name, x in value.kws]
        return f"{value.func.name}({', '.join([x.name for x in value.args] + named)})"
    if isinstance(value, ir.Expr) and value.op == "phi":
        pairs = zip(value.incoming_values, value.incoming_blocks, strict=True)
        return "phi(" + ", ".join(f"{getattr(x, 'name', x)} from {label}" for x, label in pairs) + ")"
    return str(value)
