"""Gradients through packages as they are on PyPI: right, refused, or wrong; see `docs/reference/wild.md`."""
