"""The shortest vectors between points of periodic lattices, of pymatgen: between images that are constant."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from plaingrad.rulebook import Rule
from plaingrad.rules.packages.formulas import like
from plaingrad.rules.scipy.implicit import Rules, called, source_of

MODULE = "pymatgen.util.coord_cython"


def definition_of(function: Any) -> Any:
    """(f2 - f1 + n) M for whole numbers n, with fractional coordinates f and the lattice M, and the squared lengths."""

    def vectors(
        lattice: Any, fcoords1: Any, fcoords2: Any, mask: Any = None, return_d2: bool = False, lll_frac_tol: Any = None
    ) -> Any:
        # what the lattice keeps is computed here, where it has derivatives
        _ = lattice.lll_matrix
        options = {} if lll_frac_tol is None else {"lll_frac_tol": lll_frac_tol}
        value = called(function, ((lattice, fcoords1, fcoords2, mask, return_d2), options))
        first, second = (np.atleast_2d(np.asarray(f, float)) for f in (fcoords1, fcoords2))
        matrix = lattice.matrix
        between = second[None, :, :] - first[:, None, :]
        found = np.asarray(value[0] if return_d2 else value)
        images = np.rint(found @ np.linalg.inv(matrix) - between).astype(int)
        z = (between + images) @ matrix
        derived = like("pymatgen.util.coord_cython.pbc_shortest_vectors", found, z)
        return (derived, (derived * derived).sum(axis=-1)) if return_d2 else derived

    return vectors


def rules() -> Iterable[Rule]:
    """Of `pymatgen.util.coord_cython`; its other functions look for neighbours."""
    yield from Rules()
    function = getattr(sys.modules.get(MODULE), "pbc_shortest_vectors", None)
    if function is not None:
        yield Rule(function, "composed", definition=definition_of(function), source=source_of(definition_of))
