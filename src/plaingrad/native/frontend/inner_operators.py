"""Derivatives that a program takes itself: `plaingrad.grad(g)(x)` and the like, found before types are inferred.

A call of a derivative becomes one of an `InnerDerivative`: an object of a Numba type of its own, which knows the
function, the operator and its options, and of which type inference asks what it returns. A closure over variables of
the program becomes a function that takes them as arguments: what they hold at the call, as in Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from numba.core import ir, ir_utils, types
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typing.templates import signature
from numba.core.untyped_passes import InlineClosureLikes, TranslateByteCode
from numba.extending import typeof_impl

from plaingrad.critical import imported
from plaingrad.errors import NativeError
from plaingrad.native.program.dispatchers import is_dispatcher, is_operator, made_by, python_function

OF_FUNCTIONS = {  # operators that return a function -> the names of their options, and their defaults
    "grad": {"argnums": 0, "has_aux": False},
    "value_and_grad": {"argnums": 0, "has_aux": False},
    "jacobian": {"argnums": 0},
    "hessian": {"argnums": 0},
    "derivative": {"order": 1},
}
AT_A_POINT = ("jvp", "hvp")  # (f, primals, tangents)
TIERS = ("auto", "native", "plain", "fastest")


class _Unresolved(Exception):
    """An operator whose function or options are not known before the program runs."""


@dataclass(eq=False, slots=True)
class InnerDerivative:
    """A derivative as a program calls it.

    Attributes:
        operator: the name of what makes it.
        f: the Python function or dispatcher, or another `InnerDerivative`.
        options: of the operator.
        moving: of `jvp` and `hvp`, the arguments that have a tangent.
        made: types of the arguments -> the function that computes it.
    """

    operator: str
    f: Any
    options: dict[str, Any]
    moving: tuple[int, ...] = ()
    made: dict[tuple[Any, ...], FunctionType] = field(default_factory=dict)

    @property
    def __name__(self) -> str:
        """For messages."""
        return f"{self.operator} of {getattr(self.f, '__name__', 'a function')}"

    def implementation(self, kinds: tuple[Any, ...]) -> FunctionType:
        """The Python function, of derived programs, that computes it for arguments of these types."""
        found = self.made.get(kinds)
        if found is None:
            found = imported("plaingrad.native.compile.inner_derivatives").implementation(self, kinds)
            self.made[kinds] = found
        return found  # type: ignore[no-any-return]


# what an operator has become whose calls are replaced: a value that nothing can be done with
NOTHING = InnerDerivative("nothing", None, {})


@dataclass(eq=False, slots=True)
class Derived:
    """A derived program as type inference sees it: which is not to compile it."""

    run: Any

    @property
    def __name__(self) -> str:
        """For messages."""
        return str(self.run.__name__)

    def implementation(self, kinds: tuple[Any, ...]) -> Any:
        """The dispatcher."""
        return self.run


class InnerType(types.Callable):
    """The Numba type of one of these."""

    def __init__(self, what: InnerDerivative | Derived) -> None:
        self.what = what
        super().__init__(f"plaingrad({what.__name__}, {id(what)})")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The type of a call, which the front end finds as for any function."""
        if not imported("plaingrad.native.frontend.current").is_typed_here(context):
            return types.Dispatcher(self.dispatcher(args)).get_call_type(context, args, kws)
        if kws:
            raise NativeError(f"`{self.what.__name__}` is called with arguments by keyword")
        kinds = tuple([types.unliteral(t) for t in args])
        program = imported("plaingrad.native.frontend.translation").program
        return signature(program(self.what.implementation(kinds), kinds).result, *args)

    def dispatcher(self, args: Any) -> Any:
        """The dispatcher that is called for arguments of these types."""
        made = self.what.implementation(tuple([types.unliteral(t) for t in args]))
        current = imported("plaingrad.native.frontend.current")
        return made if is_dispatcher(made) else current.dispatcher_of(made)

    def get_call_signatures(self) -> Any:
        """There is no list of them."""
        return (), False

    def get_impl_key(self, sig: Any) -> Any:
        """The compiled function."""
        return types.Dispatcher(self.dispatcher(sig.args)).get_impl_key(sig)


@typeof_impl.register(InnerDerivative)
@typeof_impl.register(Derived)
def _typeof(what: Any, context: Any) -> InnerType:
    return InnerType(what)


@register_pass(mutates_CFG=False, analysis_only=False)
class InnerOperators(FunctionPass):
    """Calls of derivatives replaced by those of objects that know how they are computed."""

    _name = "plaingrad_inner_operators"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Whether there were any."""
        func_ir = state.func_ir
        if not any(
            _is_named(func_ir, s.value) for b in func_ir.blocks.values() for s in b.find_insts(ir.Assign)
        ):
            return False
        _Replacing(func_ir, state.args).all()
        func_ir._definitions = ir_utils.build_definitions(func_ir.blocks)
        return True


class WithInnerOperators(Compiler):
    """Numba's own pipeline, for a function that takes derivatives and is called as it is."""

    def define_pipelines(self) -> list[Any]:
        """The passes."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(InnerOperators, TranslateByteCode)
        passes.add_pass_after(InnerOperators, InlineClosureLikes)
        passes.finalize()
        return [passes]


def _is_named(func_ir: Any, value: Any) -> bool:
    """Whether `value` is a derivative operator, or what one has made outside."""
    held = _value_outside(func_ir, value)
    return held is not None and (is_operator(held) or made_by(held) is not None)


def _value_outside(func_ir: Any, value: Any) -> Any:
    """The object outside that `value` is: a global, a captured variable, or an attribute of a module; or None."""
    if isinstance(value, ir.Var):
        value = ir_utils.guard(ir_utils.get_definition, func_ir, value)
    if isinstance(value, (ir.Global, ir.FreeVar)):
        return value.value
    if isinstance(value, ir.Expr) and value.op == "getattr":
        owner = _value_outside(func_ir, value.value)
        return getattr(owner, value.attr, None) if isinstance(owner, ModuleType) else None
    return None


class _Replacing:
    """The calls of derivatives in one program."""

    def __init__(self, func_ir: Any, kinds: Any) -> None:
        self.ir = func_ir
        self.kinds = kinds
        self.gone: list[Any] = []  # definitions that only the calls replaced have read
        self.count = 0

    def all(self) -> None:
        """Replace them."""
        for block in self.ir.blocks.values():
            body: list[Any] = []
            for s in block.body:
                if isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "call":
                    body += self.replaced(s)
                body.append(s)
            block.body = body
        for block in self.ir.blocks.values():
            for s in block.find_insts(ir.Assign):
                if any(s.value is gone for gone in self.gone):
                    s.value = ir.Global(NOTHING.operator, NOTHING, s.loc)

    def replaced(self, s: Any) -> list[Any]:
        """What has to come before an assignment, whose call has become one of an inner derivative."""
        call = s.value
        gone = len(self.gone)
        try:
            found = self.derivative(call.func)
            args = list(call.args)
            if found is None:
                at_point = self.at_point(call)
                if at_point is None:
                    return []
                found, args = at_point
            what, captured = found
        except _Unresolved:
            del self.gone[gone:]
            return []
        self.count += 1
        name = ir.Var(call.func.scope, f"$inner_derivative{self.count}.{s.target.name}", s.loc)
        s.value = ir.Expr.call(name, (*args, *captured), call.kws, s.loc)
        return [ir.Assign(ir.Global(what.__name__, what, s.loc), name, s.loc)]

    def definition(self, v: Any) -> Any:
        """What the only assignment of a variable assigns, copies followed; None if there are several."""
        return ir_utils.guard(ir_utils.get_definition, self.ir, v) if isinstance(v, ir.Var) else v

    def constant(self, v: Any) -> Any:
        """The value of a variable that is constant."""
        try:
            return self.ir.infer_constant(v)
        except Exception:
            raise _Unresolved from None

    def derivative(self, v: Any) -> tuple[InnerDerivative, tuple[Any, ...]] | None:
        """(a derivative that a variable is, the variables that its function captures)."""
        held = _value_outside(self.ir, v)
        made = made_by(held)
        if made is not None:
            operator, f, options = made
            names = OF_FUNCTIONS.get(operator.__name__)
            if names is None:
                raise _Unresolved
            self.forget(v)
            given = dict(zip((*names, "tier"), options, strict=False))
            return InnerDerivative(operator.__name__, f, {k: x for k, x in given.items() if k in names}), ()
        call = self.definition(v)
        if not (isinstance(call, ir.Expr) and call.op == "call"):
            return None
        operator = _value_outside(self.ir, call.func)
        if operator is None or not is_operator(operator):
            return None
        name = python_function(operator).__name__
        if name not in OF_FUNCTIONS:
            return None
        names = OF_FUNCTIONS[name]
        options = dict(names)
        for key, x in [*zip(names, call.args[1:], strict=False), *call.kws]:
            self.option(key, self.constant(x), options)
        f, captured = self.function(call.args[0] if call.args else None)
        self.forget(call.func)
        self.gone.append(call)
        return InnerDerivative(name, f, options), captured

    def option(self, key: str, value: Any, options: dict[str, Any]) -> None:
        """Note an option of an operator."""
        if key in options:
            options[key] = value
        elif not (key == "tier" and value in TIERS or key == "mode"):
            raise _Unresolved

    def at_point(self, call: Any) -> Any:
        """((a product with a derivative, captured variables), arguments) of a call of `jvp` or `hvp`."""
        operator = _value_outside(self.ir, call.func)
        if operator is None or not is_operator(operator):
            return None
        name = python_function(operator).__name__
        if name not in AT_A_POINT or len(call.args) != 3 or any(key != "tier" for key, _ in call.kws):
            return None
        f, captured = self.function(call.args[0])
        primals, tangents = (self.items(x) for x in call.args[1:])
        dots = [(k, x) for k, x in enumerate(tangents) if not self.is_none(x)]
        self.forget(call.func)
        if len(primals) != len(tangents) or not dots:
            raise _Unresolved
        what = InnerDerivative(name, f, {"primals": len(primals)}, tuple([k for k, _ in dots]))
        return (what, captured), [*primals, *[x for _, x in dots]]

    def is_named(self, v: Any) -> bool:
        """Whether what a variable holds has a name in the user's program."""
        while isinstance(v, ir.Var):
            if not v.name.startswith("$"):
                return True
            (v,) = self.ir._definitions[v.name]
        return False

    def is_none(self, v: Any) -> bool:
        """Whether a variable is None."""
        found = self.definition(v)
        return isinstance(found, ir.Const) and found.value is None

    def items(self, v: Any) -> list[Any]:
        """The variables that a tuple, or a list that is written in the call, is made of, as they are at the call."""
        found = self.definition(v)
        if not (isinstance(found, ir.Expr) and found.op in ("build_tuple", "build_list")):
            raise _Unresolved
        if found.op == "build_list" and self.is_named(v):  # it may have been changed since it was made
            raise _Unresolved
        if any(
            isinstance(self.definition(x), ir.Const) and self.definition(x).value is None for x in found.items
        ):
            self.gone.append(found)  # a tuple with None in it has a type that nothing else needs
        return list(found.items)

    def function(self, v: Any) -> tuple[Any, tuple[Any, ...]]:
        """(the function that a variable is, the variables of the program that it captures)."""
        inner = self.derivative(v)
        if inner is not None:
            return inner
        held = _value_outside(self.ir, v)
        if isinstance(held, FunctionType) or is_dispatcher(held):
            return held, ()
        found = self.definition(v)
        if isinstance(found, ir.Arg) and isinstance(self.kinds[found.index], types.Dispatcher):
            return self.kinds[found.index].dispatcher, ()
        if isinstance(found, ir.Expr) and found.op == "make_function":
            return self.lifted(found)
        raise _Unresolved

    def forget(self, v: Any) -> None:
        """The definition of an operator has no type: nothing else may read it."""
        found = self.definition(v)
        if found is not None:
            self.gone.append(found)

    def lifted(self, made: Any) -> tuple[FunctionType, tuple[Any, ...]]:
        """(a function of the arguments of a closure and of what it captures, the variables that it captures)."""
        code = made.code
        code = self.definition(code).value if isinstance(code, ir.Var) else code
        if made.defaults is not None or code.co_kwonlyargcount or code.co_flags & 0x0C:
            raise _Unresolved
        cells: list[Any] = []
        if made.closure is not None:
            closure = self.definition(made.closure)
            if not (isinstance(closure, ir.Expr) and closure.op == "build_tuple"):
                raise _Unresolved
            cells = [self.cell(x) for x in closure.items]
        self.gone.append(made)
        held = dict(zip(code.co_freevars, cells, strict=True))
        constants = {k: x for k, x in held.items() if not isinstance(x, ir.Var)}
        variables = {k: x for k, x in held.items() if isinstance(x, ir.Var)}
        return with_captured(code, tuple(variables), constants, self.ir.func_id.func.__globals__), tuple(
            variables.values()
        )

    def cell(self, v: Any) -> Any:
        """What a closure captures: a variable of the program by its name, or a constant that the program captures."""
        found = v
        while isinstance(found, ir.Var) and found.name.startswith("$"):
            definitions = self.ir._definitions[found.name]
            if len(definitions) != 1:
                raise _Unresolved
            found = definitions[0]
        if isinstance(found, ir.FreeVar):
            return (found.value,)
        if isinstance(found, ir.Var):
            return found
        raise _Unresolved


def with_captured(
    code: CodeType, variables: tuple[str, ...], constants: dict[str, Any], space: dict[str, Any]
) -> FunctionType:
    """The function with the code of a closure that takes what it captures from `variables` as further arguments.

    It has a function like the closure inside, with the closure's own code in the place of that one's.
    """
    params = code.co_varnames[: code.co_argcount]
    if set(params) & set(variables):
        raise _Unresolved
    given, captured = ", ".join(params), ", ".join([*variables, *constants])
    text = (
        f"def outer({', '.join(constants)}):\n"
        f"    def lifted({', '.join([*params, *variables])}):\n"
        f"        def inner({given}):\n            return ({captured}{',' if captured else ''})\n"
        f"        return inner({given})\n"
        "    return lifted\n"
    )
    module = compile(text, code.co_filename, "exec")
    outer = next(c for c in module.co_consts if isinstance(c, CodeType))
    lifted = next(c for c in outer.co_consts if isinstance(c, CodeType))
    inner = next(c for c in lifted.co_consts if isinstance(c, CodeType))
    if inner.co_freevars != code.co_freevars:
        raise _Unresolved
    own = tuple([code if c is inner else c for c in lifted.co_consts])
    name = code.co_name if code.co_name.isidentifier() else "function"
    new = lifted.replace(co_consts=own, co_name=name, co_firstlineno=code.co_firstlineno)
    cells = tuple([CellType(constants[k][0]) for k in new.co_freevars])
    made = FunctionType(new, space, name, None, cells or None)
    made.__module__ = space.get("__name__", "__main__")
    return made


__all__ = ["Derived", "InnerDerivative", "InnerOperators", "WithInnerOperators"]
