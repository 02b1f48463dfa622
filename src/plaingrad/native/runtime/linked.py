"""Compiled functions that only other compiled functions call: LLVM code to be linked, never machine code.

Numba makes machine code of every function, and of everything that it calls, although a caller links the LLVM code and
makes machine code of all of it once more. For the functions that derived programs call the first is of no use.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult

from plaingrad.native.runtime.allocation import ProgramCompiler

ENVIRONMENT = "_ZN08NumbaEnv"  # how the cells begin in which functions look for their environment


class Library(JITCodeLibrary):  # type: ignore[misc]
    """The LLVM code of a function and of what it calls, for others to link."""

    @classmethod
    def of(cls, codegen: Any, name: str, bitcode: bytes) -> Library:
        """The library that was kept as (name, bitcode)."""
        made = cls(codegen, name)
        made._final_module = binding.parse_bitcode(bitcode)
        made._finalize_final_module()
        return made

    def kept(self) -> tuple[str, bytes]:
        """(name, bitcode), for `of`."""
        self._ensure_finalized()
        return self.name, self._final_module.as_bitcode()

    def get_pointer_to_function(self, name: str) -> int:
        """0: there is no machine code."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        pass  # it is optimised as part of every function that links it

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        engine = self._codegen._engine
        cells = self._codegen._create_empty_module(self.name)
        for v in self._final_module.global_variables:
            if v.name.startswith(ENVIRONMENT) and not engine.is_symbol_defined(v.name):
                cell = ir.GlobalVariable(cells, cgutils.voidptr_t, name=v.name)
                cell.linkage = "common"
                cell.initializer = ir.Constant(cgutils.voidptr_t, None)
        if cells.globals:  # Numba writes the environments of functions to these
            engine.add_module(binding.parse_assembly(str(cells)))
            engine.finalize_object()
        self._finalized = True


class HelperCompiler(ProgramCompiler):
    """The compiler of functions, with such a library for its result."""

    def compile_extra(self, func: Any) -> Any:
        """The result of compiling a function."""
        self.state.library = Library(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


def reduced(made: Any) -> tuple[Any, ...]:
    """What a result of `HelperCompiler` is made of, to be pickled."""
    fndesc = made.fndesc
    fndesc.typemap = fndesc.calltypes = None  # need not be kept, and may not be picklable
    environments = tuple(made._find_referenced_environments())
    return made.library.kept(), fndesc, made.environment, made.signature, made.reload_init, environments


def rebuilt(context: Any, kept: tuple[Any, ...]) -> Any:
    """The result of `HelperCompiler` from what `reduced` gave."""
    library, fndesc, environment, signature, reload_init, environments = kept
    for start in reload_init:
        start()
    code = Library.of(context.codegen(), *library)
    made = CompileResult(
        typing_context=context.typing_context,
        target_context=context,
        entry_point=context.get_executable(code, fndesc, environment),
        typing_error=None,
        type_annotation="",
        signature=signature,
        objectmode=False,
        lifted=(),
        fndesc=fndesc,
        library=code,
        call_helper=None,
        environment=environment,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=environments,
    )
    for e in environments:
        code.codegen.set_env(e.env_name, e)
    return made
