"""Sources of randomness: the draws have no tangent; what `random` makes of them in Python is differentiated."""

from __future__ import annotations

import _random
import random

from plaingrad.define import no_tangent

no_tangent(*[_random.Random.__dict__[_name] for _name in ("random", "seed", "getrandbits", "getstate", "setstate")])
no_tangent(_random.Random.__new__)
if "__init__" in _random.Random.__dict__:  # since CPython 3.12
    no_tangent(_random.Random.__init__)
no_tangent(random.SystemRandom.random)
