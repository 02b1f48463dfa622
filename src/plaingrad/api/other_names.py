"""What is called otherwise here than in JAX, PyTorch, autograd, TensorFlow, Zygote and ForwardDiff."""

from __future__ import annotations

_LOOPS = "Python's own loops and ifs are differentiated as they are"
_MARKS = "nothing is marked: grad(f)(x) is by the arguments, grad_wrt(f, [W, b]) by what f reads from outside"
_RULE = "write @plaingrad.rrule(f): y, pullback"
_STOP = "use stop_gradient(x), or nondifferentiable(f)"
_TREES = "use ravel, tree_map, tree_leaves or updated; classes need no registration"
_CALL = "there is no graph to go back through: use value_and_grad(f)(x), or vjp(f, x)"
_PRODUCT = "use hvp(f, primals, tangents), or vhp"

ADVICE: dict[str, str] = {
    "Function": _RULE,
    "GradientTape": _MARKS,
    "Params": "use grad_wrt(f, [W, b])",
    "Tensor": _MARKS,
    "Variable": _MARKS,
    "autograd": _CALL,
    "backward": _CALL,
    "check_gradients": "use plaingrad.testing.check_grads(f, args)",
    "check_grads": "use plaingrad.testing.check_grads(f, args)",
    "cond": _LOOPS,
    "custom_gradient": _RULE,
    "custom_jvp": "write @plaingrad.frule(f): Dual(y, y_dot)",
    "custom_vjp": _RULE,
    "defjvp": "write @plaingrad.frule(f): Dual(y, y_dot)",
    "defvjp": _RULE,
    "deriv": "use derivative(f)",
    "detach": _STOP,
    "diff": "use derivative(f), or grad(f)",
    "elementwise_grad": "use grad(lambda x: np.sum(f(x))), or vmap(grad(f))",
    "enable_grad": _MARKS,
    "enable_x64": "numbers and dtypes are those of your program; floats have 64 bits",
    "flatten": "use vector, back = ravel(x)",
    "fori_loop": _LOOPS,
    "forward_mode": 'use jvp, derivative or jacobian(f, mode="forward")',
    "func": "use grad, vjp, jvp, jacobian and vmap of plaingrad itself",
    "functional": "use grad, vjp, jvp, jacobian and vmap of plaingrad itself",
    "grad_and_aux": "use grad(f, has_aux=True)",
    "grad_and_value": "use value_and_grad(f): the value comes first",
    "gradcheck": "use plaingrad.testing.check_grads(f, args)",
    "gradient": "use grad(f)",
    "gradients": "use grad(f)",
    "hessian_vector_product": _PRODUCT,
    "holomorphic_grad": "use derivative(f) for complex x; grad(f) of a real f is df/dx + i df/dy",
    "ignore_derivatives": _STOP,
    "jac": "use jacobian(f)",
    "jacobian_vector_product": "use jvp(f, primals, tangents)",
    "jit": 'use tier="native" or "fastest" of grad and the like, or numba.njit',
    "lax": _LOOPS,
    "make_ggnvp": "use linearize(f, x) and vjp(f, x)",
    "make_hvp": _PRODUCT,
    "make_jaxpr": "use show(f, *args)",
    "make_jvp": "use jvp(f, primals, tangents), or linearize(f, *primals)",
    "make_vjp": "use vjp(f, *args)",
    "minimize": "use plaingrad.optimize.minimize",
    "multigrad_dict": "use grad(f) of a dictionary, or argnums=(0, 1, ...)",
    "no_grad": _STOP,
    "no_gradient": _STOP,
    "numpy": "use numpy itself",
    "odeint": "use plaingrad.integrate.solve_ivp; scipy.integrate has rules",
    "optim": "use plaingrad.optimizers, or plaingrad.optimize for SciPy's",
    "optimizer": "use plaingrad.optimizers, or plaingrad.optimize for SciPy's",
    "pmap": "use vmap; pools of processes and threads are differentiated as they are",
    "primitive": _RULE,
    "pullback": "use vjp(f, *args)",
    "pushforward": "use jvp(f, primals, tangents), or linearize(f, *primals)",
    "pytree": _TREES,
    "ravel_pytree": "use vector, back = ravel(x)",
    "register_pytree_node": _TREES,
    "remat": "use checkpoint(f, *args)",
    "requires_grad": _MARKS,
    "requires_grad_": _MARKS,
    "reverse_mode": 'use grad, vjp or jacobian(f, mode="reverse")',
    "scan": _LOOPS,
    "stop_gradients": _STOP,
    "tensor": _MARKS,
    "tree": _TREES,
    "tree_flatten": _TREES,
    "tree_unflatten": _TREES,
    "tree_util": _TREES,
    "value_and_gradient": "use value_and_grad(f)",
    "value_and_jacobian": "use jacobian(f)(x); has_aux=True returns the value beside it",
    "vector_jacobian_product": "use vjp(f, *args)",
    "watch": "statements of a block that already runs cannot be differentiated: put them into a function f, and use "
    "grad_wrt(f, [W, b])",
    "while_loop": _LOOPS,
    "withgradient": "use value_and_grad(f)",
}
MODULES = ("integrate", "optimize", "optimizers", "progress", "testing")  # imported when they are asked for


def said_of(name: str) -> str:
    """The message of an AttributeError for a name that does not exist."""
    advice = ADVICE.get(name)
    return f"module 'plaingrad' has no attribute {name!r}" + ("" if advice is None else f": {advice}")
