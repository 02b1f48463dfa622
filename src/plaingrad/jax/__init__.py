"""Functions between plaingrad and JAX: each is one entry for the other, and derivatives compose to any order."""

from plaingrad.jax.functions import function, inside

__all__ = ["function", "inside"]
