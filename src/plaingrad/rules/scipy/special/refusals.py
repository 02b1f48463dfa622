"""Functions of `scipy.special` that have derivatives nobody computes here, and those that have none."""

from __future__ import annotations

from plaingrad.rules.scipy.forms import none, refused

refused("ellipsoidal harmonics are evaluated by recurrences in C", "_ellip_harm")
none("geterr", "seterr")
