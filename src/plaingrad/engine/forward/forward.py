"""Forward mode: a level whose table holds the tangents themselves, so that memory follows what is alive.

With a chunk of n, every tangent has a leading axis of length n: n derivatives are taken in one run. Levels that
carry something else along the same ways (Taylor coefficients, index sets) override the `push_` methods.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from plaingrad.engine.forward.arrays import ForwardArrays
from plaingrad.engine.forward.rules import ForwardRules
from plaingrad.engine.memory.shapes import reshape_tangent


class ForwardLevel(ForwardRules, ForwardArrays):
    """A forward-mode derivative in progress: `index` maps a number to its tangent, an owner of memory to a `Region`.

    Attributes:
        lead: the leading axes of every tangent: () for one, (n,) for a chunk of n.
    """

    __slots__ = ()

    takes_native_rules: ClassVar[bool] = True
    follows_shapes: ClassVar[bool] = True

    def shape_changes(self, a: np.ndarray, shape: tuple[int, ...]) -> None:
        """The tangent of memory that `a` owns has its shape."""
        region = self.region(a)
        if region is not None and a.base is None:
            self.computed(reshape_tangent, region, shape)
