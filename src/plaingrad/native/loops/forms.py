"""Special forms of loops that have a faster reverse than the general one: each says so, or declines with None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.native.loops import fission, stencils, sums

# form(the reverse transform, the loop) -> its Parts, or None where the form does not fit
FORMS: tuple[Callable[[Any, Any], Any], ...] = (
    sums.fused,
    stencils.gathered,
    sums.rerun,
    fission.split_form,
)
