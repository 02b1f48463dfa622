"""The optimal transport of the package POT: the cost is linear in the costs of moving, by the transport that is best."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import like
from plaingrad.rules.scipy.implicit import Rules, called, fresh, is_active, refuse, source_of, underived

MODULE = "ot.lp.emd_wrap"


def definition_of(function: Any) -> Any:
    """The transport, a constant, its cost, and the potentials, of which nobody computes derivatives."""

    def emd(a: Any, b: Any, costs: Any, *others: Any, **options: Any) -> Any:
        if is_active(a) or is_active(b):
            refuse(function, "it is known by the costs of moving only, not by the two histograms")
        transport, cost, *potentials, code = called(function, ((a, b, costs, *others), options))
        derived = like("ot.lp.emd_wrap.emd_c", cost, np.sum(fresh(transport) * costs))
        if is_active(costs):
            potentials = [underived(u, costs, "a potential of optimal transport") for u in potentials]
        return (fresh(transport), derived, *potentials, code)

    return emd


def rules() -> Iterable[Rule]:
    """Of `ot.lp.emd_wrap`."""
    yield from Rules()
    function = getattr(sys.modules.get(MODULE), "emd_c", None)
    if function is not None:
        yield Rule(function, "composed", definition=definition_of(function), source=source_of(definition_of))
