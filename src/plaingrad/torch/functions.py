"""A plain function inside a program of PyTorch, and a function of PyTorch as one step of a plain one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import plaingrad
from plaingrad.systems import WHOLE


def inside(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as one step of what is differentiated around it, which PyTorch's autograd differentiates.

    Without it, a function of the program is followed, and each operation in it is a step. What PyTorch takes for a
    constant inside of `f`, what was detached or lies in a closure, has no derivative; a closure that holds what is
    differentiated is refused.

    Args:
        f: a function of tensors, or of lists, tuples and dictionaries of them, without side effects.

    Examples:
        >>> import torch, plaingrad, plaingrad.torch
        >>> norm = plaingrad.torch.inside(lambda x: torch.sqrt((x * x).sum()))
        >>> plaingrad.grad(lambda x: 2 * norm(x))(torch.tensor([3.0, 4.0]))
        tensor([1.2000, 1.6000])
    """

    @functools.wraps(f)
    def whole(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    setattr(whole, WHOLE, "torch")
    return whole


def function(f: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function of numbers and NumPy arrays as one of tensors, which plaingrad differentiates.

    It is a `torch.autograd.Function`: `backward()`, `torch.autograd.grad` to any order, forward mode, and `torch.func`
    but for `vmap`. A tensor without axes comes to `f` as a number, any other as an array of its dtype; results have
    the device of the first tensor. What is no tensor is passed on as it is.

    Args:
        f: a function that returns a number, an array, or a tuple of these; its value depends on nothing else.

    Examples:
        >>> import torch, plaingrad.torch
        >>> def steps(x):
        ...     y = 1.0
        ...     while abs(y * y - x) > 1e-12:
        ...         y = (y + x / y) / 2
        ...     return y
        >>> root = plaingrad.torch.function(steps)
        >>> x = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)
        >>> (3 * root(x) ** 3).backward()
        >>> round(x.grad.item(), 9)
        9.0
    """

    @functools.wraps(f)
    def of_tensors(*args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()):
            if isinstance(x, (list, tuple, dict)) and any(
                map(is_tensor, x.values() if type(x) is dict else x)
            ):
                raise plaingrad.ArgumentError(
                    "a tensor is inside a list, tuple or dictionary; pass it as an argument of its own.\n"
                    "  See docs: errors#argument"
                )
        names = list(kwargs)
        values = (*args, *kwargs.values())
        tensors = [k for k, x in enumerate(values) if is_tensor(x)]

        def of_values(*parts: Any) -> Any:
            whole = list(values)
            for k, part in zip(tensors, parts, strict=True):
                whole[k] = part
            return f(*whole[: len(args)], **dict(zip(names, whole[len(args) :], strict=True)))

        if not tensors:
            return f(*args, **kwargs)
        return called(of_values, *[values[k] for k in tensors])

    setattr(of_tensors, WHOLE, "torch")
    return of_tensors


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor."""
    return isinstance(x, torch.Tensor)


def called(f: Callable[..., Any], *tensors: Any) -> Any:
    """f of the numbers and arrays in `tensors`, in PyTorch's graph."""
    return Called.apply(f, *tensors)


class Called(torch.autograd.Function):
    """A plain function in PyTorch's graph. Its backward pass is such a function again."""

    @staticmethod
    def forward(f: Callable[..., Any], *tensors: Any) -> Any:
        """The function itself."""
        y = f(*map(from_tensor, tensors))
        device = tensors[0].device
        if isinstance(y, tuple):
            return tuple([to_tensor(part, device, tensors) for part in y])
        return to_tensor(y, device, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """What the derivatives need."""
        ctx.f, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.is_tuple = isinstance(output, tuple)
        outputs = output if ctx.is_tuple else (output,)
        ctx.varying = [z.is_floating_point() or z.is_complex() for z in outputs]
        ctx.mark_non_differentiable(
            *[z for z, varies in zip(outputs, ctx.varying, strict=True) if not varies]
        )

    @staticmethod
    def backward(ctx: Any, *bars: Any) -> Any:
        """x_bar, for the tensors that need it, by `plaingrad.vjp`."""
        f, tensors, is_tuple, varying = ctx.f, ctx.saved_tensors, ctx.is_tuple, ctx.varying
        count = len(tensors)
        wanted = tuple([k for k in range(count) if ctx.needs_input_grad[k + 1]])

        def pull(*values: Any) -> Any:
            def of_wanted(*parts: Any) -> Any:
                whole = list(values[:count])
                for k, part in zip(wanted, parts, strict=True):
                    whole[k] = part
                return f(*whole)

            given = iter(values[count:])
            y_bars = [next(given) if varies else None for varies in varying]
            return plaingrad.vjp(of_wanted, *[values[k] for k in wanted])[1](
                tuple(y_bars) if is_tuple else y_bars[0]
            )

        given = [bar for bar, varies in zip(bars, varying, strict=True) if varies]
        found = dict(zip(wanted, called(pull, *tensors, *given), strict=True))
        return None, *[found.get(k) for k in range(count)]

    @staticmethod
    def jvp(ctx: Any, _: Any, *dots: Any) -> Any:
        """y_dot by `plaingrad.jvp`."""
        f, tensors = ctx.f, ctx.saved_tensors
        count = len(tensors)
        moving = tuple([k for k in range(count) if dots[k] is not None])

        def push(*values: Any) -> Any:
            every: list[Any] = [None] * count
            for k, dot in zip(moving, values[count:], strict=True):
                every[k] = dot
            return plaingrad.jvp(f, values[:count], tuple(every))[1]

        return called(push, *tensors, *[dots[k] for k in moving])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Refused: a plain function has no batched form."""
        raise plaingrad.ArgumentError(
            "a plain function runs for one example at a time, torch.func.vmap asks for a batch.\n"
            "  To go on: call it in a loop and torch.stack the results, or write it for arrays with a batch axis.\n"
            "  See docs: errors#argument"
        )


def from_tensor(x: Any) -> Any:
    """A tensor as a number or an array of its own memory."""
    a = np.array(x.detach().cpu().numpy())
    return (a.item() if a.dtype in (np.float64, np.complex128) else a[()]) if a.ndim == 0 else a


def to_tensor(y: Any, device: Any, tensors: Any) -> Any:
    """A number or array as a tensor; a Python number in the precision of the first tensor of real numbers."""
    if isinstance(y, (float, complex)) and not isinstance(y, np.generic):
        like = next((x.dtype for x in tensors if x.is_floating_point()), torch.float64)
        dtype = torch.promote_types(like, torch.complex64) if isinstance(y, complex) else like
        return torch.tensor(y, dtype=dtype, device=device)
    if y is None:
        return torch.zeros((), device=device)
    return torch.as_tensor(np.array(y), device=device)
