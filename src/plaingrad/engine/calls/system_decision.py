"""What is called instead of a function, class or module of another system of automatic differentiation."""

from __future__ import annotations

import functools
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from plaingrad import number_classes, systems
from plaingrad.engine.calls.other_systems import call, caller, method_of
from plaingrad.engine.calls.system_arrays import INTO, depends
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.systems.scripts import is_script

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


def whole(level: Level, f: FunctionType) -> Any:
    """What to call instead of a function of Python, if it is one of a system's; else None."""
    system = systems.owner(f)
    return None if system is None else caller(level, system, f)


def decision(level: Level, f: Any) -> Any:
    """What to call instead of `f`, if it is a function, method or object of another system; else None."""
    owner = getattr(f, "__self__", None)
    if owner is not None and not isinstance(owner, type) and (system := number_classes.system_of(owner)):
        return functools.partial(caller(level, system, method_of(owner, f.__name__)), owner)
    system = systems.owner(f)
    if system is None:
        return module_call(level, f) if is_module(type(f)) else None
    if isinstance(f, type) and f.__name__ not in INTO and not issubclass(f, tuple):
        return constructor(level, f)
    if is_module(type(f)):
        return module_call(level, f)
    return caller(level, system, f) if callable(f) else None


def constructor(level: Level, cls: type) -> Any:
    """A class of the system's own objects: what they hold is no value of the program's."""

    def construct(*args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()):
            if level.calls.finds_active(x):
                if cls.__name__ == "Parameter":
                    missing_rule(
                        cls, "Use the tensor itself, by torch.func.functional_call or F.linear and its like."
                    )
                missing_rule(cls, "It is given numbers that depend on the differentiated inputs.")
        return cls(*args, **kwargs)

    return construct


def is_module(t: type) -> bool:
    """Whether `t` is a class of modules of PyTorch."""
    return any(c.__module__ == "torch.nn.modules.module" and c.__name__ == "Module" for c in t.__mro__)


def module_call(level: Level, module: Any) -> Any:
    """A module of PyTorch: one step if it is made of PyTorch's own, else its `forward` is run."""

    def call_module(*args: Any, **kwargs: Any) -> Any:
        if has_hooks(module):
            if any(map(level.calls.finds_active, (*args, *kwargs.values()))) or parameters(level, module):
                missing_rule(module, "It has hooks, which PyTorch calls where nobody follows.")
            return module(*args, **kwargs)
        if any(systems.owner(type(part)) is None for part in module.modules()):
            forward = type(module).forward
            if systems.owner(forward) is not None:  # a container of PyTorch's: what it calls is the program's
                return level.calls.inside(forward)(module, *args, **kwargs)
            return level.prep(forward)(module, *args, **kwargs)
        system = number_classes.systems.find(sys.modules["torch"].Tensor)
        assert system is not None
        held = parameters(level, module)
        if not held:
            return call(level, system, module, args, kwargs)
        if is_script(module):
            missing_rule(
                module,
                "TorchScript has compiled it, and takes no parameters from outside; use the module itself.",
            )
        functional = sys.modules["torch"].func.functional_call
        return call(level, system, functional, (module, held, args, kwargs), {})

    return call_module


def parameters(level: Level, module: Any) -> dict[str, Any]:
    """The parameters and buffers of a module that are active, by name."""
    found = [*module.named_parameters(), *module.named_buffers()]
    return {name: x for name, x in found if depends(level, x)}


def has_hooks(module: Any) -> bool:
    """Whether calls of a module, or of one in it, run hooks."""
    return any(
        part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks
        for part in module.modules()
    )
