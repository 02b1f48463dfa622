"""From a function and argument types to Numba's typed IR: its own front end, stopped before it optimises or compiles.

Numba decodes the bytecode, inlines closures, prunes branches, brings the program into SSA form and infers types.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import warnings
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core import compiler, ir, ir_utils, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import AnalysisPass, FunctionPass, register_pass
from numba.core.errors import ForceLiteralArg, NumbaWarning
from numba.core.interpreter import Interpreter
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonTypeInference
from numba.core.untyped_passes import InlineClosureLikes, TranslateByteCode

from plaingrad.critical import closing, guard_at_fork, imported
from plaingrad.errors import NativeError
from plaingrad.native.frontend.current import typed_here, with_compiled_callees
from plaingrad.native.frontend.inner_operators import InnerOperators
from plaingrad.native.frontend.lost_writes import Deadness, writes
from plaingrad.native.program.dispatchers import python_function, reached_from

guard_at_fork(global_compiler_lock._lock, 60.0)  # a child could not compile anything if it were held


class _Taken(Exception):
    """Carries the typed IR out of Numba's pipeline."""


@register_pass(mutates_CFG=False, analysis_only=True)
class _TakeTypedIR(AnalysisPass):
    _name = "plaingrad_take_typed_ir"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        raise _Taken(state.func_ir, state.typemap, state.return_type)


class _Interpreter(Interpreter):
    """Numba's decoder of bytecode, which takes no assignment for that of a new variable where a loop goes on behind it.

    Numba (0.68) does so in blocks that every way through the function passes and that are in no loop; but the only way
    out of a `while True` stands inside its loop, and what follows it there would use the new variable, the top the old.
    """

    @property
    def cfa(self) -> Any:
        return self._cfa

    @cfa.setter
    def cfa(self, cfa: Any) -> None:
        spans = (
            [(loop.header, max(loop.body)) for loop in cfa.graph.loops().values()] if cfa is not None else []
        )
        if spans:
            cfa._backbone = {b for b in cfa.backbone if not any(top < b < end for top, end in spans)}
        self._cfa = cfa


@register_pass(mutates_CFG=True, analysis_only=False)
class _Decode(FunctionPass):
    _name = "plaingrad_decode"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state["func_ir"] = _Interpreter(state["func_id"]).interpret(state["bc"])
        return True


class LostWriteError(NativeError):
    """The compiled function is another one than its source: Numba drops a write that is read."""


@register_pass(mutates_CFG=True, analysis_only=False)
class _InlineClosures(InlineClosureLikes):
    """Numba's pass, refused where it loses a write that is wanted; numbers drawn that nothing reads are drawn still."""

    _name = "plaingrad_inline_closures"

    def run_pass(self, state: Any) -> bool:
        before, deadness = writes(state.func_ir), Deadness(state.func_ir)
        changed = _draws_kept(super().run_pass, state)
        left = {id(s) for s in writes(state.func_ir)}
        for s in before:
            if id(s) not in left and not deadness.is_dead(s):
                raise LostWriteError(
                    f"Numba loses the write `{s}` at line {s.loc.line} when it inlines the closures"
                )
        return bool(changed)


def _draws_kept(run_pass: Callable[[Any], Any], state: Any) -> Any:
    """Numba takes np.random.random() for nothing where its result is not read; the draws that follow depend on it."""
    handlers, dropping = ir_utils.remove_call_handlers, ir_utils.remove_dead_random_call
    was_there = dropping in handlers

    def without() -> Any:
        if was_there:
            handlers.remove(dropping)
        return run_pass(state)

    def end() -> None:
        if was_there and dropping not in handlers:
            handlers.append(dropping)

    with global_compiler_lock:
        return closing(without, end)


@register_pass(mutates_CFG=False, analysis_only=False)
class _SpecialFunctions(FunctionPass):
    """Functions of `scipy.special` that Numba does not know replaced by those that `special_functions` has for them."""

    _name = "plaingrad_special_functions"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        changed = False
        if "scipy.special" in sys.modules:
            for block in state.func_ir.blocks.values():
                for s in block.find_insts(ir.Assign):
                    found = _special_function(state.func_ir, s.value)
                    if found is not None:
                        s.value = ir.Global(found.__name__, found, s.loc)
                        changed = True
            if changed:
                state.func_ir._definitions = ir_utils.build_definitions(state.func_ir.blocks)
                cpu_target.typing_context.refresh()
        return changed


def _special_function(func_ir: Any, value: Any) -> Any:
    """The function to be called in the place of what `value` is.

    That is a ufunc that Numba does not know, or a function of `cython_special` that the user has made by its address;
    None for anything else.
    """
    held = _outside(func_ir, value)
    if isinstance(held, ctypes._CFuncPtr):
        return imported("plaingrad.native.runtime.special_functions").of_address(held)
    if type(held) is not np.ufunc or cpu_target.typing_context._lookup_global(held) is not None:
        return None
    return imported("plaingrad.native.runtime.special_functions").of_scipy(held)


def _outside(func_ir: Any, value: Any) -> Any:
    """The object outside that `value` is: a global, a captured variable, or an attribute of a module; or None."""
    if isinstance(value, (ir.Global, ir.FreeVar)):
        return value.value
    if isinstance(value, ir.Expr) and value.op == "getattr":
        owner = _outside(func_ir, ir_utils.guard(ir_utils.get_definition, func_ir, value.value))
        return getattr(owner, value.attr, None) if isinstance(owner, ModuleType) else None
    return None


OURS = {TranslateByteCode: _Decode, InlineClosureLikes: _InlineClosures}


class _FrontEnd(CompilerBase):
    inference = NopythonTypeInference

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_untyped_pipeline(self.state)
        passes.passes = [(OURS.get(step, step), why) for step, why in passes.passes]
        passes.add_pass_after(_SpecialFunctions, _Decode)
        passes.add_pass_after(InnerOperators, _Decode)
        passes.add_pass_after(InnerOperators, _InlineClosures)
        passes.add_pass(self.inference, "type inference")
        passes.add_pass(_TakeTypedIR, "take the typed IR")
        passes.finalize()
        return [passes]


def typed_ir(
    f: Callable[..., Any], signature: tuple[Any, ...], kinds: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any], Any]:
    """(IR, type of every variable, type of the result) of the Python function `f` for these argument types.

    `kinds` are the types that variables were declared with.
    """
    try:
        return typed_here(f, _run, _FrontEnd, f, signature, kinds or {})  # type: ignore[return-value]
    except ForceLiteralArg:
        raise  # to the function that calls this one
    except Exception as error:  # Numba's own, or what its passes stumble over: assertions, TypeError, ...
        raise _not_compiled(f, signature, error) from error


def _run(
    front_end: type[CompilerBase],
    f: Callable[..., Any],
    signature: tuple[Any, ...],
    kinds: dict[str, Any] | None = None,
) -> tuple[Any, ...]:
    """What a pipeline that ends with `_Taken` carries out."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    flags = compiler.Flags()
    flags.nrt = True
    contexts = cpu_target.typing_context, cpu_target.target_context
    try:
        with warnings.catch_warnings():  # Numba gives its warnings where the user compiles the function
            warnings.simplefilter("ignore", NumbaWarning)
            compiler.compile_extra(
                *contexts, f, signature, None, flags, kinds or {}, pipeline_class=front_end
            )
    except _Taken as taken:
        return taken.args
    raise AssertionError("the front end did not stop")


@register_pass(mutates_CFG=True, analysis_only=False)
class _AllErrors(NopythonTypeInference):
    """Type inference that goes on after an error as far as types are known."""

    _name = "plaingrad_all_typing_errors"
    _raise_errors = False

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        raise _Taken(*state.typing_errors or ())


class _Survey(_FrontEnd):
    inference = _AllErrors


def typing_errors(
    f: Callable[..., Any], signature: tuple[Any, ...], known: str = ""
) -> list[tuple[str, int, str]]:
    """(file, line, what is wrong) of all that Numba's type inference has no type for; none, or one, if it gives up.

    Errors that name `known` are left out.
    """
    function = with_compiled_callees(python_function(f))  # type: ignore[arg-type]
    try:
        errors: tuple[Any, ...] = typed_here(function, _run, _Survey, function, signature)
    except Exception as error:
        errors = (error,)
    texts = [(error, ESCAPES.sub("", str(error))) for error in errors]
    if known:
        texts = [(error, text) for error, text in texts if known not in text]
    first = [(error, text) for error, text in texts if UNDECIDED not in text]  # others follow from these
    code = function.__code__
    found = []
    for error, text in first or texts:
        place = IN_FILE.search(text)
        loc = getattr(error, "loc", None)
        file, line = (loc.filename, loc.line) if loc is not None else (code.co_filename, code.co_firstlineno)
        if place is not None:  # relative to the working directory
            file, line = os.path.abspath(place.group(1)), int(place.group(2))
        found.append((file, line, in_short(error)))
    return list(dict.fromkeys(found))


UNDECIDED = "Undecided type"
IN_FILE = re.compile('File "([^"]+)", line (\\d+)')  # the innermost of several functions comes first


ESCAPES = re.compile("\x1b\\[[0-9;]*m")  # colours


def in_short(error: BaseException) -> str:
    """The first sentence of Numba's own text that says what is wrong."""
    lines = [line.strip() for line in ESCAPES.sub("", str(error)).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("Failed in ", "-", "During: "))]
    if not lines:
        return type(error).__name__
    text = lines[0]
    if text.endswith("found for signature:") and len(lines) > 1:
        text += f" {lines[1].removeprefix('>>> ')}"
    return text if len(text) <= 300 else f"{text[:300]} ..."


def _not_compiled(f: Any, signature: tuple[Any, ...], error: Exception) -> NativeError:
    code = getattr(f, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    kind = LostWriteError if isinstance(error, LostWriteError) else NativeError
    return kind(
        f"Numba cannot compile `{getattr(f, '__qualname__', f)}`{where} for ({', '.join(map(str, signature))}):\n"
        f"  {in_short(error)}\n  To go on: tier='plain' differentiates it as it is.\n"
        "  See docs: errors#native"
    )


def typed_ir_of(f: Any, signature: tuple[Any, ...]) -> tuple[FunctionType, Any, dict[str, Any], Any]:
    """(the Python function of `f`, its callees compiled; the three of `typed_ir`)."""
    function = with_compiled_callees(python_function(f))  # type: ignore[arg-type]
    for other in reached_from(function):
        if other.py_func.__code__ is function.__code__:
            try:  # Numba's type inference of a recursive function wants it begun already
                other.compile(signature)
            except Exception as error:
                raise _not_compiled(function, signature, error) from error
    return function, *typed_ir(function, signature)


def listing(f: Callable[..., Any], signature: tuple[Any, ...]) -> str:
    """The typed IR of `f` as text: block by block, with the types of variables and the lines of `f`."""
    _, typed, kinds, _ = typed_ir_of(f, signature)
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
