"""What a program calls is typed, not compiled: for programs that CPython will run.

As soon as Numba's type inference wants the type of a call's result, Numba compiles the callee to machine code, and what
that calls: three quarters of the time of a test whose derived program CPython runs. Here inference does no more than it
says. What is compiled on purpose meanwhile is compiled as ever.
"""

import contextlib

import pytest
from numba.core import compiler, errors, typing
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.typed_passes import NopythonTypeInference


class _Typed(Exception):
    """Carries the type of a result out of Numba's pipeline."""


@register_pass(mutates_CFG=False, analysis_only=True)
class _Stop(AnalysisPass):
    _name = "plaingrad_tests_stop"

    def __init__(self):
        AnalysisPass.__init__(self)

    def run_pass(self, state):
        raise _Typed(state.return_type)


class _Typing(CompilerBase):
    def define_pipelines(self):
        passes = DefaultPassBuilder.define_untyped_pipeline(self.state)
        passes.add_pass(NopythonTypeInference, "type inference")
        passes.add_pass(_Stop, "stop")
        passes.finalize()
        return [passes]


def _signature(dispatcher, args):
    """The signature of a dispatcher for arguments of these types."""
    if args in dispatcher.overloads:
        return dispatcher.overloads[args].signature
    known = vars(dispatcher).setdefault("_typed_by_tests", {})
    if args not in known:
        its = dispatcher._compiler
        flags = compiler.Flags()
        its.targetdescr.options.parse_as_flags(flags, its.targetoptions)
        contexts = its.targetdescr.typing_context, its.targetdescr.target_context
        f = its._get_implementation(args, {})
        try:
            with global_compiler_lock, dispatcher._compiling_counter:
                compiler.compile_extra(
                    *contexts, f, args, None, its._customize_flags(flags), its.locals, pipeline_class=_Typing
                )
        except _Typed as typed:
            known[args] = typing.signature(*typed.args, *args)
        except errors.ForceLiteralArg as error:
            raise error.bind_fold_arguments(lambda args, kws: its.fold_argument_types(args, kws)[1]) from None
    return known[args]


def _get_call_template(self, args, kws):
    pysig, args = self._compiler.fold_argument_types(args, kws)
    signatures = self.nopython_signatures
    if (
        self._can_compile and self.is_compiling
    ):  # recursion with arguments of other types: Numba wants the code
        self.compile(tuple(args))
        signatures = self.nopython_signatures
    elif self._can_compile:
        signatures = [*signatures, _signature(self, tuple(args))]
    name = self.py_func.__name__
    return typing.make_concrete_template(f"CallTemplate({name})", name, signatures), pysig, args, {}


def _get_overload(self, sig):
    return ORIGINALS["get_overload"](self, sig) if tuple(sig) in self.overloads else None


def _compile_core(self):
    with pytest.MonkeyPatch.context() as patch:
        for name, original in ORIGINALS.items():
            patch.setattr(Dispatcher, name, original)
        return super(Compiler, self)._compile_core()


OURS = {"get_call_template": _get_call_template, "get_overload": _get_overload}
ORIGINALS = {name: getattr(Dispatcher, name) for name in OURS}


@contextlib.contextmanager
def typing_only():
    """Have Numba compile nothing that is not compiled on purpose."""
    with pytest.MonkeyPatch.context() as patch:
        for name, ours in OURS.items():
            patch.setattr(Dispatcher, name, ours)
        patch.setattr(Compiler, "_compile_core", _compile_core)
        yield
