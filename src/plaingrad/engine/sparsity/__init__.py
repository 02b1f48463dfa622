"""Sparsity: which outputs depend on which inputs, and how few derivatives give the whole Jacobian then.

In comes a function and its arguments; out goes the pattern of its Jacobian or Hessian (`patterns`, found by a level
that carries sets of input indices; `dependence` says what a function does to them) and a colouring of it
(`colouring`). Called by `api.sparse`.
"""
