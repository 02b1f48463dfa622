"""One derivative being taken: its table of identities, and what it does with an operation, in any mode.

A level evaluates primals and rules through the hooks of the next level out (`parent`), which is how derivatives of
derivatives come about. Nothing here is global: the level in force is the value of the context variable `CURRENT`.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from plaingrad.engine.calls.access import Access
from plaingrad.engine.calls.calls import CACHEABLE, Calls
from plaingrad.engine.calls.comparisons import comparisons
from plaingrad.engine.calls.operators import Operators, unary_general
from plaingrad.engine.calls.rule_application import RuleApplication
from plaingrad.engine.compiled import core
from plaingrad.engine.fusion.hot_hooks import SWEEP_BYTES
from plaingrad.engine.refusals.answered import settled
from plaingrad.engine.users_code import adopt, codes
from plaingrad.engine.values import texts
from plaingrad.engine.values.borrowed import Borrowed
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.rewrite.evaluation import evaluate
from plaingrad.rewrite.hooks import HOOKED, set_hooks


class Level(RuleApplication, Operators, Access):
    """A derivative in progress; an instance is the set of hooks that rewritten code calls.

    Its parts are `Identities` (the table), `RuleApplication`, `Operators`, `Access` (items and elements) and `Calls`
    (what is called instead of a function). What is recorded, or computed beside the primal, is left to the modes,
    `ReverseLevel` and `ForwardLevel`.
    """

    __slots__ = ("form", "heirs", "hot", "is_closed", "keeps_hooks", "patched", "refusal", "spare", "unary")

    heirs: list[weakref.ref[Level]]  # closed levels inside this one, whose hooks are this one's
    form: str  # of the code that runs at this level; see `rewrite.cache`
    refusal: BaseException | None  # one that the program only printed or logged
    # (container, key, fresh leaf) of what was patched in the arguments: code that is run again finds them by it.
    patched: list[tuple[Any, Any, Any]]
    keeps_hooks: bool  # it was closed when no frame was left that could go on with them
    # Levels inside this one that are used again, and how many references each has to this one; see `reuse`.
    spare: list[tuple[Any, Level, int, int]]
    takes_native_rules: ClassVar[bool] = False  # a compiled function may be one step of its derived rule
    follows_processes: ClassVar[bool] = True  # tasks of other processes are steps
    keeps_tasks: ClassVar[bool] = False  # their tapes may stay where they ran until the way back
    follows_shapes: ClassVar[bool] = False  # `a.shape = ...` has a derivative; see `shape_changes`

    def __init__(self, parent: Any) -> None:
        self.parent = parent
        self.is_closed = self.keeps_hooks = False
        self.index = {}
        self.alive = []
        self.arrays = []
        self.borrowed = Borrowed(self)
        self.captured = {}
        self.texts = self.first_texts()
        self.twins = []
        self.fresh = {}
        self.heirs = []
        self.spare = []
        self.refusal = None
        self.activating = threading.RLock()
        self.sweeping = threading.RLock()
        self.may_sweep = True
        self.patched = []
        self._array_bytes = 0
        self._array_limit = SWEEP_BYTES
        self.fuses, self.form = False, HOOKED
        self.blocks = {}
        self.recorder = None
        self.hot = self.hot_hooks()
        self.unary = self.hot["unary"]
        calls = Calls(self)
        self.calls = calls
        self.choose_arithmetic()
        self.pos = unary_general(self, "pos")
        self.invert = unary_general(self, "invert")
        self.lt, self.le, self.eq, self.ne, self.gt, self.ge = comparisons(self)
        self.contains = self._contains
        self.getitem = self._getitem
        self.setitem = self._setitem
        self.attr, self.method, self.set_attr = calls.attr, calls.method, calls.set_attr
        self.prep = calls.prep
        self.iterable, self.text = self._iterable, self._text
        self.meet, self.meet_all, self.met_items = calls.meet, calls.meet_all, self._met_items
        self.expression = self._expression
        if core is not None:
            self._look_compiled()

    def first_texts(self) -> texts.Texts:
        """What is remembered of numbers that leave as text."""
        return texts.texts_for(self.parent)

    def _look_compiled(self) -> None:
        """Let the compiled hooks look first; what needs work comes to those that are set."""
        calls = self.calls
        slow = {
            "recorder": self.recorder,
            "texts": self.texts,
            "callables": calls.callables,
            "bound": calls.bound,
            "prep": calls.prep,
            "function": calls._decide_function,
            "attr": calls.attr,
            "method": calls.method,
            "set_attr": calls.set_attr,
            "getitem": self.getitem,
            "setitem": self.setitem,
            "iterable": self.iterable,
            "contains": self.contains,
            "meet": self.meet,
            "meet_all": self.meet_all,
            "comparisons": (self.lt, self.le, self.eq, self.ne, self.gt, self.ge),
        }
        looks = core.Looks(
            calls.functions,
            calls.prepared,
            calls.methods,
            calls.stores,
            adopt.settled,
            CACHEABLE,
            codes.is_watched,
            slow,
        )
        calls.prep, calls.attr, calls.method = looks.prep, looks.attr, looks.method
        self.prep, self.attr, self.method, self.set_attr = (
            looks.prep,
            looks.attr,
            looks.method,
            looks.set_attr,
        )
        self.contains, self.meet, self.meet_all = looks.contains, looks.meet, looks.meet_all
        calls.meet_all = looks.meet_all
        self.getitem, self.setitem, self.iterable = looks.getitem, looks.setitem, looks.iterable
        self.expression = core.Evaluator(looks, self.recorder, self.expression).expression
        self.lt, self.le, self.eq = looks.lt, looks.le, looks.eq
        self.ne, self.gt, self.ge = looks.ne, looks.gt, looks.ge

    def _expression(self, *given: Any) -> Any:
        """The value of an expression, by the hooks one after another."""
        return evaluate(self, given, sys._getframe(1))

    # -- what a mode does ------------------------------------------------------------------------------------------

    def hot_hooks(self) -> dict[str, Any]:
        """The hooks that run most; those of numbers replace the general ones where the rules are plaingrad's own."""
        raise NotImplementedError

    def choose_arithmetic(self) -> None:
        """Let the hot hooks do what is plaingrad's own; an operator with a user's rule goes the general way."""
        raise NotImplementedError

    def shape_changes(self, a: np.ndarray, shape: tuple[int, ...]) -> None:
        """a.shape = shape comes next, of an active array, or one that a pullback reads."""
        raise NotImplementedError

    # -- opening and closing ---------------------------------------------------------------------------------------

    def run(self, f: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """f(*args, **kwargs) with this level in force; closed at the end, however that comes."""
        before = CURRENT.get()
        token = None
        held = sys.getrefcount(self) - self.references_of_spare()
        try:  # see `plaingrad.critical`
            try:
                try:
                    try:
                        try:
                            adopt.level_opened(self)
                            token = CURRENT.set(self)
                            value = self.prep(f)(*args, **kwargs)
                        finally:
                            if token is not None:
                                CURRENT.reset(token)
                            self.calls.closed()
                            # With only those references that it had before it ran, and the one of `adopt`, no frame
                            # goes on with its hooks.
                            seen = sys.getrefcount(self) - held - 1 - self.references_of_spare()
                            self.keeps_hooks = not seen and core is not None and not self.heirs
                            self.close()
                    except BaseException:
                        self._leave(before)
                        raise
                except BaseException:
                    self._leave(before)
                    raise
            except BaseException:
                self._leave(before)
                raise
        except BaseException as error:
            self._leave(before)
            if self.refusal is not None and error is not self.refusal and isinstance(error, Exception):
                raise settled(self.refusal, error)  # noqa: B904 - what it led to is its context
            raise
        if self.refusal is not None:
            raise settled(self.refusal)
        return value

    def references_of_spare(self) -> int:
        """How many references to this level those have that are kept inside it."""
        return sum([count for _, _, count, _ in self.spare]) if self.spare else 0

    def empty(self) -> None:
        """Let go of what the derivative has left, when it is closed and is to be used again."""
        for held in (self.alive, self.arrays, self.captured, self.twins, self.fresh, self.heirs):
            if held:
                held.clear()
        self.patched = []
        if self.parent is PLAIN:
            self.texts.clear()
        self.borrowed.clear()
        self._array_bytes, self._array_limit = 0, SWEEP_BYTES
        self.recorder.renew()

    def renew(self) -> None:
        """Open it again, for another derivative."""
        self.refusal = None
        self.may_sweep = True
        self.is_closed = self.keeps_hooks = False
        self.calls.renew()

    def _leave(self, before: Any) -> None:
        """Close it after an exception, with `before` in force again."""
        if CURRENT.get() is not before:
            CURRENT.set(before)
        self.close()

    def close(self) -> None:
        """Close it, which may be done twice.

        Frames that outlive it (generators, threads) go on with the hooks of the next open level out.
        """
        if not self.is_closed:
            if self.calls.open:
                self.calls.closed()
            if not self.keeps_hooks:
                self._hand_over()
            self.fuses = False
            self.is_closed = True
        adopt.level_closed(self)

    def _hand_over(self) -> None:
        outer = self.parent
        while outer is not PLAIN and not outer.calls.open:
            outer = outer.parent
        closed = [self, *[level for level in [heir() for heir in self.heirs] if level is not None]]
        for level in closed:
            level.fuses = False
            set_hooks(level, outer)
        if outer is not PLAIN:
            outer.heirs += map(weakref.ref, closed)
