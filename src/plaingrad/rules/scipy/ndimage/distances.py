"""The Euclidean distance transform: distances move with the sampling, which places are nearest does not."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import _morphology

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import keep, source
from plaingrad.rules.scipy.implicit import by_name, called, carrying, is_active, without_rule

_function = _morphology.distance_transform_edt
followed = without_rule(_function)


def distance_transform_edt(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Distances that are zero stay so: there the root has no slope, and needs none."""
    args, kwargs = call
    if not is_active(given["sampling"]) or not given["return_distances"] or given["distances"] is not None:
        return followed(*args, **kwargs)
    found = called(function, call)
    value = found[0] if isinstance(found, tuple) else found
    nearest = called(function, ((given["input"], given["sampling"], False, True), {}))
    away = nearest - np.indices(np.shape(value))
    sampling = np.asarray(given["sampling"]) * np.ones(np.ndim(value))
    square = ((away * sampling.reshape(-1, *[1] * np.ndim(value))) ** 2).sum(0)
    positive = np.any(away != 0, 0)
    z = np.where(positive, np.sqrt(np.where(positive, square, 1.0)), 0.0)
    moved = carrying(value, z)
    return (moved, *found[1:]) if isinstance(found, tuple) else moved


keep(Rule(_function, "composed", definition=by_name(_function, distance_transform_edt), source=source()))
