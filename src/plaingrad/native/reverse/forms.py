"""What reverse mode may know of special forms of loops: what it asks, in which order, before it takes its general way.

The forms themselves are made above (`loops/`) and handed in, so that reverse mode depends on none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from plaingrad.native.program.ir import For, Loop, Parts, Stmt

if TYPE_CHECKING:
    from plaingrad.native.reverse.reverse import Reverse


class HasReverse(Protocol):
    """A run of statements that has a form."""

    def reverse(self) -> Parts:
        """What becomes of it."""
        ...


class Finder(Protocol):
    """Looks for runs of statements of one form in the program of one transform."""

    def find(self, body: list[Stmt], taken: set[int]) -> tuple[dict[int, HasReverse], set[int]]:
        """(the runs in `body` by the place of their last statement, the places of their other statements).

        Args:
            body: statements in a row.
            taken: the places of those that belong to another form.
        """
        ...


@dataclass(frozen=True, slots=True)
class LoopForm:
    """A form of whole loops.

    Attributes:
        name: what it is called.
        needs: what a loop must be like.
        saves: what is not kept, or not done, compared with the general reverse of a loop.
        parts: `parts(transform, loop)` is what becomes of the loop, or None where the form does not fit.
    """

    name: str
    needs: str
    saves: str
    parts: Callable[[Reverse, For | Loop], Parts | None]


@dataclass(frozen=True, slots=True)
class RunForm:
    """A form of runs of statements on arrays, which become loops over elements.

    Attributes:
        name, needs, saves: as those of a loop form.
        finder: makes what looks for such runs, for one transform.
    """

    name: str
    needs: str
    saves: str
    finder: Callable[[Reverse], Finder]


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms that are tried, each kind in its order: the first that fits is taken.

    Attributes:
        loops, runs: of whole loops, and of runs of statements.
        refilled: `refilled(transform, loop)` gives the scratch arrays that the way back of an iteration fills again,
            each with the loop in the body that fills it.
    """

    loops: tuple[LoopForm, ...] = ()
    runs: tuple[RunForm, ...] = ()
    refilled: Callable[[Reverse, For], dict[str, For]] | None = None


NO_FORMS = Forms()
