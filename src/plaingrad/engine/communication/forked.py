"""The step of the tape at which a process was started. It runs rewritten at a level further out, unlike its neighbours.

A forked child has a copy of this step, too: there the way back ends with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import mover
from plaingrad.engine.memory.memory import WHOLE, Shadow, add_into
from plaingrad.errors import RoundTripError
from plaingrad.rules.processes.exchange import Exchange
from plaingrad.rules.processes.family import met, post, receive
from plaingrad.rules.processes.members import PassedOver


class Forked(Exchange):
    """The place on the tapes where a process was started.

    Attributes:
        first: all numbers and arrays that were active then have an index below it.
    """

    def __init__(self, kin: Any, child: Any, first: int) -> None:
        self.kin, self.child, self.first = kin, child, first

    def meet(self, shadow: Shadow) -> None:
        """Add what the child has found of what was there when it began."""
        child, kin = self.child, self.kin
        met(kin, shadow)
        if takes_part(kin, child):
            found, bars = receive(about_fork(kin, child), kin, child.address)
            for index, bar in zip(found, bars, strict=True):
                add_whole(shadow, index, bar)

    def pull(self, bars: list[Any]) -> list[Any]:
        """All is done when it is met."""
        return []

    def push(self, dots: list[Any]) -> list[Any]:
        """The child has the tangents."""
        return []


class Begun(Exchange):
    """Where a child has begun, on its own tapes: its way back is over.

    Between the two steps may be what other threads have recorded until the fork. That is the parent's.

    Attributes:
        first: what was active when the process was to be started has an index below it.
        beyond: what was active when it began.
    """

    def __init__(self, kin: Any, child: Any, first: int, beyond: int) -> None:
        self.kin, self.child, self.first, self.beyond = kin, child, first, beyond

    def meet(self, shadow: Shadow) -> None:
        """The child hands on the cotangents of what was there."""
        check_own(shadow, self.first, self.beyond)
        post(self.child.address[:-1], about_fork(self.kin, self.child), below(shadow, self.first))
        raise PassedOver

    def push(self, dots: list[Any]) -> list[Any]:
        """The child has the tangents."""
        return []


def check_own(shadow: Shadow, first: int, beyond: int) -> None:
    """Refuse what another thread has made while the process was being started, and the child has used."""
    if any(shadow.bars[n] is not None for n in range(first, beyond)):
        raise RoundTripError(
            "a process has used numbers that another thread computed while the process was being started.\n"
            "  Which of them it has is a matter of chance, and the way back does not know.\n"
            "  To go on: start processes where no other thread computes what they use.\n  See docs: errors#round-trip"
        )


def about_fork(kin: Any, child: Any) -> Any:
    """What the message of a child that has gone back is about."""
    return "fork", kin.depth, kin.passes, child.address


def takes_part(kin: Any, child: Any) -> bool:
    """Whether a child goes back, too."""
    return child.address not in kin.silent


def below(shadow: Shadow, first: int) -> list[Any]:
    """The indices below `first` to which something has arrived, and the cotangents."""
    found = [n for n in range(first) if shadow.bars[n] is not None]
    return [found, [shadow.bars[n] for n in found]]


def add_whole(shadow: Shadow, index: int, bar: Any) -> None:
    """Add a cotangent of a number or of a whole region of memory."""
    if type(bar) is not np.ndarray:
        shadow.add_number(index, bar)
    elif bar.dtype.names is None:
        shadow.add_array(index, WHOLE, bar)
    elif shadow.bars[index] is None:
        shadow.bars[index] = bar
    else:
        add_into(shadow.bars[index], bar)


mover(check_own, about_fork, takes_part, below)
