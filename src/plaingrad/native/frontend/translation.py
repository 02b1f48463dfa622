"""The front end: from a Python function or dispatcher and argument types to a `Program`.

Numba's typed IR, a graph of blocks in single assignment, is translated statement by statement; then the graph becomes
a tree (`structure.py`), and iteration becomes counted loops (`iteration.py`).
"""

from __future__ import annotations

import ctypes
import operator
from dataclasses import replace
from typing import Any

import numpy as np
from numba.core import ir, types
from numba.core.dispatcher import LiftedCode
from numba.np.numpy_support import as_dtype

from plaingrad import rulebook
from plaingrad.native.frontend.current import dispatcher_of, original, with_compiled_callees
from plaingrad.native.frontend.guards import guarded
from plaingrad.native.frontend.handlers import OUTSIDE, Callee, Handlers
from plaingrad.native.frontend.inner_operators import Derived, InnerDerivative
from plaingrad.native.frontend.iteration import counted
from plaingrad.native.frontend.literal_sets import only_asked
from plaingrad.native.frontend.meaning import implementation
from plaingrad.native.frontend.operands import constant
from plaingrad.native.frontend.structure import Graph, Irreducible, structured
from plaingrad.native.frontend.typed_ir import typed_ir_of
from plaingrad.native.frontend.values import UNSET, ValuesOf
from plaingrad.native.program.dispatchers import (
    identity,
    is_dispatcher,
    is_parallel,
    is_plain,
    options_of,
    python_function,
)
from plaingrad.native.program.ir import (
    RESULT,
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
    operands,
    renamed,
    statements,
    value_of,
    with_inner,
)
from plaingrad.native.program.value_types import type_of_value

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
TRANSLATED = (
    "__plaingrad_translated__"  # attribute of stand-ins: their programs, typing being what takes long
)
MOST = 64  # programs of one function
COMPARISONS = frozenset(("<", "<=", "==", "!=", ">", ">=", "is", "is not", "in"))


def program(f: Any, signature: tuple[Any, ...]) -> Program:
    """`f`, a Python function or dispatcher, as a `Program` for these argument types.

    Raises:
        NativeError: Numba cannot type it, or it uses something that cannot be differentiated natively.
    """
    function = with_compiled_callees(python_function(f))  # type: ignore[arg-type]
    options = options_of(f) if is_dispatcher(original(f)) else None
    key = (signature, rulebook.changes(), str(options))
    known = vars(function).setdefault(TRANSLATED, {})  # goes when it goes, which its programs refer to
    made = known.get(key)
    if made is None:
        if len(known) > MOST:
            known.clear()
        made = known[key] = _Translator(options, *typed_ir_of(function, signature)).program()
    body = renamed(made.body, {})  # each mode, and each caller, changes its own
    for s in statements(body):
        if isinstance(s, For):
            s.parallel = s.parallel and is_parallel(f)
    return replace(made, params=list(made.params), body=body, types=dict(made.types), function=f)


class _Translator(ValuesOf):
    """From Numba's IR to a tree: constants and modules folded, phis made moves, iteration made counted loops."""

    def __init__(self, options: dict[str, Any] | None, *typed: Any, callers: tuple[Any, ...] = ()) -> None:
        """`options` are those that the function was compiled with, None if its user has not compiled it."""
        super().__init__(*typed)
        self.options = options
        self.callers = (*callers, identity(self.function))

    # -- the whole -------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        graph, params = self.graph()
        try:
            tree = structured(graph)
        except Irreducible:
            raise self.refuse("a loop with two entries") from None
        for s in statements(tree):
            if isinstance(s, Let) and s.target.startswith("exit_"):
                self.types[s.target] = types.boolean if s.op == "compare" else types.int64
        tree = counted(
            self, _with_methods(self, tree, {s.target: s for s in statements(tree) if isinstance(s, Let)})
        )
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

    def graph(self, around: Any = None) -> tuple[Graph, list[str]]:
        """(the graph of the blocks, the parameters); what it raises goes to the block `around`, if that is given."""
        guards = guarded(self.ir.blocks)
        blocks = guards.blocks
        graph = Graph(min(blocks), {}, {}, {}, {}, {})
        phis: dict[Any, list[Any]] = {}
        params = self.parameters(blocks)
        for label, block in sorted(blocks.items()):
            out: list[Stmt] = []
            for s in block.body[:-1] if block.is_terminated else block.body:
                self.line = s.loc.line
                if isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "phi":
                    if s.target.name not in self.known:
                        phis.setdefault(label, []).append(s)
                else:
                    out += self.statement(s)
            end = block.terminator
            self.line = graph.lines[label] = end.loc.line
            graph.successors[label] = self._end(end, label, out, graph.test)
            graph.body[label] = out
        for label, found in phis.items():
            for source in {b for phi in found for b in phi.value.incoming_blocks if b in blocks}:
                graph.moves[source, label] = self._moves(found, source)
        if guards.handlers or around is not None:
            if self.options is None:
                self.line = min(blocks[label].body[0].loc.line for label in guards.handlers or blocks)
                raise self.refuse("`try`")
            Handlers(self, graph, self.options).enter(guards, around)
        return graph, params

    def _end(self, end: Any, label: Any, out: list[Stmt], test: dict[Any, Operand]) -> tuple[Any, ...]:
        """Where a block goes on; what its end does is added to `out`, what it tests to `test`."""
        if isinstance(end, ir.Jump):
            return (end.target,)
        if isinstance(end, ir.Branch):
            test[label] = self.operand(end.cond)
            return end.truebr, end.falsebr
        if isinstance(end, ir.Return):
            out.append(Let(RESULT, "copy", (self.operand(end.value),), None, self.line))
        elif isinstance(end, (ir.StaticRaise, ir.Raise, ir.DynamicRaise)):
            out.append(self._raise(end))
        else:
            raise self.refuse(f"`{end}`")
        return ()

    def entered(self, f: Any, kinds: tuple[Any, ...]) -> Callee:
        """The graph of a function that is called in a `try`, what it raises going OUTSIDE."""
        if identity(f) in self.callers:
            raise self.refuse(f"`{f.__name__}`, which calls itself inside of a `try`,")
        function = with_compiled_callees(python_function(f))  # type: ignore[arg-type]
        made = _Translator(self.options, *typed_ir_of(function, kinds), callers=self.callers)
        graph, params = made.graph(OUTSIDE)
        made.types[RESULT] = made.result
        if UNSET in made.known.values():
            self.known[f"{f.__name__} sets"] = UNSET
        return Callee(made, graph, params)

    def parameters(self, blocks: dict[Any, Any]) -> list[str]:
        """The names of the parameters; notes what is known of the variables in `blocks`."""
        for name in self.ir.arg_names:
            t = self.typemap.get(f"arg.{name}")
            if isinstance(t, types.Module):  # what a partial derivative of a row computes with
                self.known[f"arg.{name}"] = Ref(t.pymod, name)
        self.asked = only_asked(blocks)
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
        return params

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
        if isinstance(s, (ir.TryRaise, ir.StaticTryRaise, ir.DynamicTryRaise)):
            raise self.refuse("`raise` of what was caught")
        raise self.refuse(f"`{type(s).__name__.lower()}`")

    def _assign(self, s: Any, line: int) -> list[Stmt]:
        target, value = s.target.name, s.value
        if isinstance(value, ir.Expr) and value.op == "inplace_binop" and target in self.known:
            return self._in_place(value, line)
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
            if symbol == "in":
                args = args[::-1]  # of `contains` the container is the first
            truths = [x for x in args if isinstance(x, Const) and isinstance(x.value, bool)]
            if symbol in ("is", "is not") and truths:
                # a bool that was kept is NumPy's, when CPython runs the derived program
                symbol = "==" if symbol == "is" else "!="
            return make("compare" if symbol in COMPARISONS else "binary", args, symbol)
        if op == "unary":
            return make("unary", (self.operand(value.value),), SYMBOLS[value.fn])
        if op == "typed_getitem":
            raise self.refuse("`literal_unroll` of values of several types")
        if op == "getitem":
            return make("item", (self.operand(value.value), self.operand(value.index)))
        if op == "static_getitem":
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
        if op == "build_set" and target in self.asked and value.items:
            self.types[name] = types.UniTuple(self.typemap[target].dtype, len(value.items))
            return make("tuple", map(self.operand, value.items))
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

    def _in_place(self, value: Any, line: int) -> list[Stmt]:
        symbol = SYMBOLS[value.immutable_fn]
        lhs, rhs = self.operand(value.lhs), self.operand(value.rhs)
        mine, its = (self.typemap[x.name] for x in (value.lhs, value.rhs))
        if isinstance(mine, types.Array) and isinstance(its, types.Array) and mine.ndim < its.ndim:
            raise self.refuse(f"`{symbol}=` by an array with more axes, which NumPy raises ValueError for,")
        if not isinstance(mine, types.List):
            return [InPlace(lhs, symbol, rhs, line)]
        if symbol != "+":
            raise self.refuse(f"`{symbol}=` of a list")
        return [Do(Let("_", "method", (lhs, rhs), ("extend", ()), line), line)]

    def _attribute(self, name: str, value: Any, line: int) -> list[Stmt]:
        t = self.typemap[value.value.name]
        if isinstance(t, types.Array) and value.attr == "flat":
            if t.layout != "C":
                raise self.refuse("`.flat` of an array that is not contiguous")
            self.types[name] = types.Array(t.dtype, 1, "C", readonly=not t.mutable)
            return [Let(name, "method", (self.operand(value.value),), ("ravel", ()), line)]
        if isinstance(self.typemap.get(value.value.name), types.Module):
            raise self.refuse(f"`.{value.attr}`")
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
                part = self.fresh("part", t)
                setup.append(Let(part, "item", (rest, Const(k)), None, line))
                args.append(Var(part))
        keywords = tuple(key for key, _ in value.kws)
        args += [self.operand(a) for _, a in value.kws]
        kind = self.typemap[value.func.name]
        callee = self.operand(value.func)
        if isinstance(callee, Var) and isinstance(kind, types.NumberClass):  # T = type(x); T(0.5)
            dtype = as_dtype(kind.dtype).type
            callee = Ref(dtype, dtype.__name__)
        callee = self.as_compiled(callee, args, keywords)
        if isinstance(value_of(callee), LiftedCode):
            raise self.refuse("`with objmode`")
        if isinstance(value_of(callee), ctypes._CFuncPtr):
            raise self.refuse(
                f"`{getattr(callee, 'name', 'function')}`, C code that is known by its address only,"
            )
        if callee == Const(divmod):
            parts = [self.fresh("part", t) for t in self.typemap[self.target]]
            symbols = zip(parts, ("//", "%"), strict=True)
            setup += [Let(part, "binary", tuple(args), symbol, line) for part, symbol in symbols]
            return [*setup, Let(name, "tuple", tuple(map(Var, parts)), None, line)]
        if callee == Const(slice):
            return [*setup, Let(name, "slice", tuple(args), None, line)]
        return [*setup, Let(name, "call", (callee, *args), keywords, line)]

    def as_compiled(self, callee: Operand, args: list[Operand], keywords: tuple[str, ...]) -> Operand:
        """What is called where compiled code calls `callee`: another function if there is an overload of it."""
        f = value_of(callee)
        inner = isinstance(f, (InnerDerivative, Derived))
        if not inner and not is_plain(f):
            return callee
        kinds = [self.types[a.name] if isinstance(a, Var) else type_of_value(a.value) for a in args]
        if inner:
            made = f.implementation(tuple([types.unliteral(t) for t in kinds]))
            return Ref(made if is_dispatcher(made) else dispatcher_of(made), made.__name__)
        try:
            found = implementation(f, [types.unliteral(t) for t in kinds], keywords)
        except Exception as error:  # whatever the overload raises for types that it was not asked for
            raise self.refuse(f"the overload of `{f.__name__}`") from error
        return callee if found is None else Ref(dispatcher_of(found), found.__name__)

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


def _with_methods(draft: Any, body: list[Stmt], definitions: dict[str, Let]) -> list[Stmt]:
    """`body` in which calls of attributes are "method"s; `definitions`: variable -> what assigns it."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Let) and s.op == "call" and isinstance(s.args[0], Var):
            found = definitions.get(s.args[0].name)
            if found is None or found.op != "attribute":
                draft.line = s.line
                raise draft.refuse("a call of a function that is computed")
            owner = found.args[0]
            if found.detail == "conjugate" and isinstance(draft.type_of(owner), types.Complex):
                s = Let(s.target, "call", (Ref(np.conj, "conj"), owner), (), s.line)
            else:
                s = Let(s.target, "method", (owner, *s.args[1:]), (found.detail, s.detail), s.line)
        elif (
            isinstance(s, Let)
            and s.op == "attribute"
            and isinstance(draft.types.get(s.target), types.BoundFunction)
        ):
            continue
        elif isinstance(s, If):
            then, orelse = (
                _with_methods(draft, s.then, definitions),
                _with_methods(draft, s.orelse, definitions),
            )
            s = If(s.test, then, orelse, s.line)
        elif isinstance(s, Loop):
            s = Loop(_with_methods(draft, s.body, definitions), s.line)
        out.append(s)
    return out


def _name(a: Operand) -> str | None:
    return getattr(value_of(a), "__name__", None)


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
