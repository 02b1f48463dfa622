"""The public door: gradients, tangents, Jacobians and what is built of them. Thin: the engine does the work."""

from plaingrad.api.gradients import grad, value_and_grad, vjp
from plaingrad.api.observe import hook, nestlevel, show

__all__ = ["grad", "hook", "nestlevel", "show", "value_and_grad", "vjp"]
