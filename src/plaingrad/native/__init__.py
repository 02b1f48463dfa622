"""The native tier: derivatives of what Numba can type, derived from its typed IR and compiled by it."""
