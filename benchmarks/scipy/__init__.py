"""Gradients of programs that call SciPy, beside a plain call and JAX."""
