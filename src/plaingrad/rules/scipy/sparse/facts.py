"""The forms in which facts about `_sparsetools` are stated."""

from __future__ import annotations

import scipy.sparse._sparsetools as tools

from plaingrad.rules.scipy.compiled import constant, definitions, each, enter

defined = definitions(tools)

__all__ = ["constant", "defined", "each", "enter"]
