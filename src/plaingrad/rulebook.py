"""The rulebook: callable -> `Rule`. Those who cache decisions watch it, so a rule defined late takes effect at once.

One callable may have several rules, chosen by the types of the arguments: they are the `variants` of one entry.
"""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any, Protocol

import numpy as np

from plaingrad import rules_of_functions
from plaingrad.class_keys import is_among, key_of
from plaingrad.critical import exclusively, shared_lock
from plaingrad.errors import RuleError
from plaingrad.rule_data import Rule, Types, narrower


class Watcher(Protocol):
    """Somebody who keeps decisions that follow from rules."""

    def rulebook_changed(self) -> None:
        """A rule was added or removed."""

    def code_changed(self, function: Any) -> None:
        """A function was given other code."""

    def classes_changed(self) -> None:
        """An attribute of a class was replaced."""


_changes = [0]
_rules: dict[Any, Rule] = {}
_waiting: dict[str, Callable[[], Iterable[Rule]]] = {}  # by module, what is entered when it is met
_with_ufuncs: list[str] = []  # the modules among them that have ufuncs
_covered: dict[Any, Rule] = {}  # plaingrad's own rules, where the program has put others
_combinations: dict[Any, Any] = {}
_watchers: dict[int, weakref.ref[Watcher]] = {}  # by identity
_lock = shared_lock()


def add(rule: Rule) -> None:
    """Enter `rule`, replacing an earlier one for the same callable and types of arguments."""
    source = _entering.get()
    if source is not None:
        rule = rule.but(users=True, source=source)
    if _entering_in.get() is not None:
        rule = rule.but(context=_entering_in.get())
    gathered = _gathering.get()
    if gathered is None:
        exclusively(_lock, _add, rule)
    else:
        gathered.append(rule)


def _add(rule: Rule) -> None:
    key = _key(rule.function)
    known = find(rule.function) if _waiting else _rules.get(key)  # none waits while plaingrad enters its own
    if rule.users and known is not None and not known.users:
        _covered[key] = known
    if rule.types is not None or rule.context is not None or (known is not None and known.variants):
        rule = _with_variant(known, rule)
    if type(key) is FunctionType and rule.users and key not in _rules:
        rules_of_functions.put(key, rule)
    else:
        _rules[key] = rule
    _tell()


def _take_out(key: Any) -> Rule | None:
    rule = _rules.pop(key, None)
    return rules_of_functions.pop(key) if rule is None and type(key) is FunctionType else rule


_entering: ContextVar[str | None] = ContextVar("entering", default=None)


class Context:
    """Rules that hold where a program has entered this context, with those of the contexts around it."""

    def __init__(self, name: str) -> None:
        self.name = name


entered_contexts: ContextVar[tuple[Context, ...]] = ContextVar(
    "entered_contexts", default=()
)  # innermost first
_entering_in: ContextVar[Context | None] = ContextVar("entering_in", default=None)


@contextmanager
def entering_in(context: Context) -> Iterator[None]:
    """Rules that are added meanwhile hold in `context`."""
    token = _entering_in.set(context)
    try:
        yield
    finally:
        _entering_in.reset(token)


@contextmanager
def entering_for_user(source: str) -> Iterator[None]:
    """Rules that are added meanwhile are the program's own, and come from `source`."""
    token = _entering.set(source)
    try:
        yield
    finally:
        _entering.reset(token)


def _with_variant(known: Rule | None, rule: Rule) -> Rule:
    """The entry `known` with `rule` among its variants."""
    before = () if known is None else known.variants or (known,)
    for other in before:
        if not _is_alternative(other, rule):
            continue
        if other.types is not None and rule.types is not None and other.types.text != rule.types.text:
            raise RuleError(
                f"the rule for {rule.name}{rule.types.text} cannot be told from {other.types.text}, at {other.source}: "
                "rules are chosen by the classes of arguments alone.\n  See docs: errors#rule"
            )
    variants = (*[other for other in before if not _is_alternative(other, rule)], rule)
    general = next((other for other in variants if other.types is None and other.context is None), None)
    if general is None:
        general = Rule(rule.function, "full", source=rule.source)
    return general.but(variants=variants, users=True)


def _is_alternative(a: Rule, b: Rule) -> bool:
    """Whether one of two rules of a function would replace the other."""
    return a.types == b.types and a.context is b.context


def same_types(function: Any, types: Types | None) -> Rule | None:
    """The rule that one for these arguments would replace."""
    known = find(function)
    if known is None:
        return None
    for rule in known.variants or (known,):
        if rule.types == types and rule.context is _entering_in.get():
            return rule
    return None


def choose(
    rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], declined: Sequence[Any] = ()
) -> Rule | None:
    """Among the variants of `rule` the most specific that fits these arguments; None if none does.

    Those of the innermost context come first. Where it gives one mode only, the other comes from the most specific
    variant that has it. Without a rule of the program's that has not declined it is plaingrad's own.

    Raises:
        RuleError: two fit, and neither is more specific than the other.
    """
    if not rule.variants and not declined:
        return rule
    best = _best(rule, _candidates(rule, declined), args, kwargs)
    if best is None and declined:
        own = _covered.get(_key(rule.function))
        return own if own is not None and own not in rule.variants else None
    return None if best is None or best.kind == "withdrawn" else best


def _candidates(rule: Rule, declined: Sequence[Any]) -> list[list[Rule]]:
    """The variants of a rule that hold here, and have not declined: those of each context, the innermost first."""
    contexts = (*entered_contexts.get(), None)
    variants = rule.variants or (rule,)
    if declined:
        variants = tuple([one for one in variants if one.rrule not in declined and one.dual not in declined])
    return [[one for one in variants if one.context is context] for context in contexts]


def _best(
    rule: Rule, candidates: list[list[Rule]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Rule | None:
    fitting: list[Rule] = []
    for found in candidates:
        fitting = [one for one in found if one.types is None or one.types.fit(args, kwargs)]
        if fitting:
            break
    else:
        return None
    best = _most_specific(rule, fitting, args, kwargs)
    if best.kind != "full" or len(fitting) == 1:
        return best
    if best.rrule is None:
        others = [one for one in fitting if one.rrule is not None]
        if others:
            other = _most_specific(rule, others, args, kwargs)
            return _combined(best, rrule=other.rrule, names=best.parameters)
    elif best.frule is None:
        others = [one for one in fitting if one.frule is not None]
        if others:
            other = _most_specific(rule, others, args, kwargs)
            if other.kind == "full":
                return _combined(best, frule=other.frule, chunked_frule=other.chunked_frule, dual=other.dual)
    return best


def _combined(rule: Rule, **half: Any) -> Rule:
    """`rule` with a half of another, always the same object."""
    key = (id(rule), *map(id, half.values()))
    found = _combinations.get(key)
    if found is None:
        found = _combinations[key] = (rule.but(**half), rule, half)
    return found[0]


def _most_specific(rule: Rule, fitting: list[Rule], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Rule:
    keys = [*range(len(args)), *kwargs]

    def beats(a: Rule, b: Rule) -> bool:
        if a is b or b.types is None:
            return True
        return a.types is not None and all(narrower(a.types.class_of(k), b.types.class_of(k)) for k in keys)

    best = [one for one in fitting if all(beats(one, other) for other in fitting)]
    if len(best) > 1:  # they differ in parameters that this call does not give: the shorter list is meant
        lengths = [one.types.length for one in best if one.types is not None]
        best = [one for one in best if one.types is not None and one.types.length == min(lengths)]
    if len(best) == 1:
        return best[0]
    if not best:
        best = [
            one
            for one in fitting
            if not any(beats(other, one) and not beats(one, other) for other in fitting)
        ]
    given = ", ".join(
        [type(x).__name__ for x in args] + [f"{k}={type(x).__name__}" for k, x in kwargs.items()]
    )
    first, second = best[0], best[1]
    raise RuleError(
        f"two rules for {rule.name} fit the arguments ({given}), and neither is more specific: "
        f"{first.types.text} at {first.source}, and {second.types.text} at {second.source}.\n"
        f"  To go on: enter a rule for these types.\n  See docs: errors#rule"
    )


def remove(function: Any) -> Rule | None:
    """Remove the rule for `function`, with all its variants, and return it."""
    return exclusively(_lock, _remove, _key(function))  # type: ignore[no-any-return]


def _remove(key: Any) -> Rule | None:
    rule = _take_out(key)
    _covered.pop(key, None)
    _tell()
    return rule


def uncover(function: Any) -> Rule | None:
    """Remove what the program has entered for `function`, and return it; plaingrad's own rule, if any, is back."""
    return exclusively(_lock, _uncover, function)  # type: ignore[no-any-return]


def _uncover(function: Any) -> Rule | None:
    rule = find(function)
    if rule is None or not rule.users:
        return None
    key = _key(function)
    covered = _covered.pop(key, None)
    if covered is None:
        _take_out(key)
    else:
        _rules[key] = covered
    _tell()
    return rule


def watch(watcher: Watcher) -> None:
    """Tell `watcher`, held weakly, whenever a rule is added or removed."""
    key = id(watcher)
    # The callback is C code: an exception that arrives in Python code called by the collector is only printed.
    _watchers[key] = weakref.ref(watcher, partial(_watchers.pop, key))


def watchers() -> list[Watcher]:
    """Those who keep decisions."""
    found = [reference() for reference in list(_watchers.values())]  # another thread may begin to watch
    return [watcher for watcher in found if watcher is not None]


def changes() -> int:
    """How often a rule was added or removed."""
    return _changes[0]


def _tell() -> None:
    _changes[0] += 1
    _combinations.clear()
    if not _watchers:  # as while plaingrad enters its own
        return
    for watcher in watchers():
        watcher.rulebook_changed()


def find(function: Any) -> Rule | None:
    """The rule for `function`, or None."""
    if type(function) is FunctionType:
        rule = rules_of_functions.get(function) or _rules.get(function)
        module = function.__module__
        if rule is not None or type(module) is not str or module not in _waiting:
            return rule
    else:
        rule = _rules.get(_key(function))
    return rule if rule is not None or not _waiting else _met(function)


def has_rule(f: FunctionType) -> bool:
    """Whether `find` has a rule for a Python function, or would enter those of its module first."""
    return rules_of_functions.has(f) or f in _rules or f.__module__ in _waiting


@functools.lru_cache(1)
def classes_with_rules(changes: int) -> frozenset[type]:
    """The classes of the callables that have a rule, as long as the rulebook is as it is."""
    return frozenset(type(rule.function) for rule in [*_rules.values()])


def find_for(function: Any, args: tuple[Any, ...]) -> Rule | None:
    """The rule for `function` called with `args`, or None."""
    rule = find(function)
    return choose(rule, args, {}) if rule is not None and rule.variants else rule


# -- rules of modules that not every program imports -------------------------------------------------------------------


def when_met(module: str, rules: Callable[[], Iterable[Rule]], ufuncs: bool = False) -> None:
    """Enter `rules()` when a function or class of `module` is first looked up.

    So plaingrad need not import it. A type of C code that does not know its module is "builtins.NAME". With `ufuncs`,
    which do not know theirs either, also when one without a rule is looked up after the module was imported.
    """
    _waiting[module] = rules
    if ufuncs:
        _with_ufuncs.append(module)


_gathering: ContextVar[list[Rule] | None] = ContextVar("gathering", default=None)


def files_when_met(package: str, files: Mapping[str, Iterable[str]]) -> None:
    """Enter what files of a package of plaingrad enter: each file when one of the modules that are its value is met."""
    for name, modules in files.items():
        for module in modules:
            when_met(module, partial(rules_of_file, f"{package}.{name}"))


def rules_of_file(name: str) -> list[Rule]:
    """For `when_met`: the rules that a module of plaingrad enters when it is imported; none if it was."""
    gathered: list[Rule] = []
    token = _gathering.set(gathered)
    try:
        importlib.import_module(name)
    finally:
        _gathering.reset(token)
    return gathered


def _met(function: Any) -> Rule | None:
    """The rule for a function or class of which none is entered, if it is the first of its module."""
    if type(function) is np.ufunc or type(function).__name__ == "fortran":
        for module in _with_ufuncs:
            if module in _waiting and _is_imported(module):
                exclusively(_lock, _enter_waiting, module)
        return _rules.get(function)
    if not is_among(type(function), _OF_MODULES) and not _knows_its_module(type(function)):
        return None
    owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", None)
    module = (owner if isinstance(owner, type) else function).__module__
    module = f"builtins.{owner.__qualname__}" if module == "builtins" and isinstance(owner, type) else module
    if type(module) is str and module in _waiting:
        exclusively(_lock, _enter_waiting, module)
    return _rules.get(_key(function))


def _knows_its_module(cls: type) -> bool:
    """Whether instances of a class outside of the interpreter are functions: of Cython, uarray, some of SciPy."""
    home = _home_of(cls)
    return "cython_function" in cls.__name__ or home == "uarray" or type(home) is str and home in _waiting


def _is_imported(module: str) -> bool:
    """Whether `module` is there, and whole."""
    found = sys.modules.get(module)
    return found is not None and not getattr(getattr(found, "__spec__", None), "_initializing", False)


def _is_plaingrads(function: Any) -> bool:
    """Whether a function is one of plaingrad's own, by which rules are written."""
    module = getattr(function, "__module__", None)
    return type(module) is str and module.startswith("plaingrad.")


def _enter_waiting(module: str) -> None:
    """Nobody is told: none of those who keep decisions can have decided about a function of the module."""
    if module in _waiting:
        entered = [*_waiting[module]()]
        for rule in entered:
            _rules.setdefault(_key(rule.function), rule)
        # Else it is asked for before a program has imported it, and these are rules of helpers, at most.
        if _is_imported(module) or not all(_is_plaingrads(rule.function) for rule in entered):
            _waiting.pop(module, None)
        classes_with_rules.cache_clear()


_DESCRIPTORS = (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
_home_of = vars(type)["__module__"].__get__  # of a class: its module, whatever attributes it has
_OF_MODULES = frozenset((type, FunctionType, BuiltinFunctionType, type(np.sum), *_DESCRIPTORS))


def _key(function: Any) -> Any:
    """What `function` is filed under: itself, or its identity where it cannot be hashed (the rule keeps it alive)."""
    if isinstance(function, type):
        return key_of(function)
    try:
        hash(function)
    except TypeError:
        return "unhashable", id(function)
    return function


def rules() -> Iterator[Rule]:
    """Every rule, in order of definition; those that wait for their module are entered."""
    for module in list(_waiting):
        exclusively(_lock, _enter_waiting, module)
    return entered()


def entered() -> Iterator[Rule]:
    """Every rule but those that wait for their module."""
    return iter([*_rules.values(), *rules_of_functions.every()])
