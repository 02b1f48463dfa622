"""Ordinary programs: what a gradient costs in plain calls, in styles that no rule was written for."""
