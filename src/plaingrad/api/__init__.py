"""The public door: gradients, tangents, Jacobians and what is built of them. Thin: the engine does the work."""

from plaingrad.api.batches import vmap
from plaingrad.api.checkpoints import checkpoint, checkpoint_sequence, checkpointed
from plaingrad.api.compiled import compiled_jacobian, free_workspace
from plaingrad.api.forward import derivative, jvp, linearize
from plaingrad.api.gradients import grad, value_and_grad, vjp
from plaingrad.api.information import info
from plaingrad.api.jacobians import hessian, hvp, jacfwd, jacobian, jacrev, vhp, wirtinger
from plaingrad.api.mixed_modes import forwarddiff, prefer_mode
from plaingrad.api.observe import hook, nestlevel, show, tiers_chosen, why_not_native
from plaingrad.api.parameters import ravel, tree_leaves, tree_map, updated
from plaingrad.api.sparse import sparse_hessian, sparse_jacobian, sparsity
from plaingrad.api.taylor import taylor
from plaingrad.api.watched import Watched, grad_wrt, watch
from plaingrad.engine.checkpoints import forks as _forks  # noqa: F401 - where derivatives are taken, forks are safe
from plaingrad.engine.refusals.refuse import where as _where
from plaingrad.rewrite import CURRENT as _CURRENT
from plaingrad.rewrite import PLAIN as _PLAIN
from plaingrad.rules import derivatives as _derivatives

_derivatives.OPERATORS.update(grad=grad, hessian=hessian, jacobian=jacobian, jvp=jvp, vjp=vjp, where=_where)
_derivatives.OPERATORS["is_outside"] = lambda: _CURRENT.get() is _PLAIN

__all__ = [
    "Watched",
    "checkpoint",
    "checkpoint_sequence",
    "checkpointed",
    "compiled_jacobian",
    "derivative",
    "forwarddiff",
    "free_workspace",
    "grad",
    "grad_wrt",
    "hessian",
    "hook",
    "hvp",
    "info",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "nestlevel",
    "prefer_mode",
    "ravel",
    "show",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity",
    "taylor",
    "tiers_chosen",
    "tree_leaves",
    "tree_map",
    "updated",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
    "watch",
    "why_not_native",
    "wirtinger",
]
