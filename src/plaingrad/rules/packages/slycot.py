"""Frequency responses by SLICOT, of slycot: G = C (z I - A)^-1 B."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import like
from plaingrad.rules.scipy.implicit import Rules, called, fresh, is_active, refuse, source_of, underived

MODULE = "slycot.transform"


def definition_of(function: Any) -> Any:
    """The response; of the transformed matrices beside it nobody computes derivatives."""

    def tb05ad(n: Any, m: Any, p: Any, jomega: Any, A: Any, B: Any, C: Any, job: str = "NG") -> Any:
        value = called(function, ((n, m, p, jomega, A, B, C), {"job": job}))
        place = {"NG": 3, "NH": 0}.get(job)
        if place is None:
            refuse(function, 'eigenvalues are computed as well; use job="NG"')
        response = C @ np.linalg.solve(jomega * np.eye(n) - A, B)
        by = next((x for x in (A, B, C, jomega) if is_active(x)), None)
        found = []
        for k, part in enumerate(value[:-1]):
            if k == place:
                found.append(like("slycot.transform.tb05ad", part, response))
            else:
                found.append(
                    fresh(part)
                    if by is None
                    else underived(part, by, "a transformed matrix of `slycot.transform.tb05ad`")
                )
        return (*found, value[-1])

    return tb05ad


def rules() -> Iterable[Rule]:
    """Of `slycot.transform`."""
    yield from Rules()
    function = getattr(sys.modules.get(MODULE), "tb05ad", None)
    if function is not None:
        yield Rule(function, "composed", definition=definition_of(function), source=source_of(definition_of))
