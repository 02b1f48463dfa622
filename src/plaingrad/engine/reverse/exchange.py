"""A step of the tape in which ranks exchange cotangents."""

from __future__ import annotations

from typing import Any

from plaingrad.engine.memory.memory import Shadow
from plaingrad.engine.memory.tape import add_to, cotangent_at


class ExchangeStep:
    """Messages between ranks: a step that is taken whether cotangents arrived or not."""

    __slots__ = ("exchange", "inputs", "outputs")

    def __init__(self, outputs: list[Any], inputs: list[Any], exchange: Any) -> None:
        self.outputs = outputs  # slots
        self.inputs = inputs
        self.exchange = exchange

    def back(self, shadow: Shadow, undone: list[Any]) -> None:
        """Exchange the cotangents."""
        self.exchange.meet(shadow)
        x_bars = self.exchange.pull([cotangent_at(shadow, slot) for slot in self.outputs])
        for slot, x_bar in zip(self.inputs, x_bars, strict=True):
            add_to(shadow, slot, x_bar)
