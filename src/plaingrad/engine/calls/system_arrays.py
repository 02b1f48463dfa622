"""What is known about arrays of other systems: which depend on inputs, share memory, may be written.

Marks lie in the dictionaries of tensors, and go with them.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import number_classes
from plaingrad.engine.memory.memory import extent
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.values.nesting import outwards
from plaingrad.engine.values.shared_tensors import FROM_ARRAY, LENT, is_in_array, written_roots
from plaingrad.systems.steps import constants
from plaingrad.systems.tensor_memory import version_of

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

#: Functions that make a tensor of what they are given, and methods that make a number or array of a tensor.
INTO = frozenset(
    "tensor as_tensor from_numpy asarray array Tensor FloatTensor DoubleTensor new_tensor".split()
)
OUT_OF = frozenset("numpy item tolist __array__ __float__ __complex__".split())
TRUNCATING = frozenset(
    "__int__ __index__ __bool__ __len__ __repr__ __str__ __format__ __hash__ __contains__".split()
)
#: What hands out memory, or writes where nobody sees it.
REFUSED = frozenset(
    "backward register_hook retain_grad storage untyped_storage data_ptr set_ share_memory_ apply_ map_ __dlpack__ "
    "to_dlpack from_dlpack save grad normal normal_ __reduce_ex__ __reduce__ unsafe_buffer_pointer resize_ "
    "pin_memory_".split()
)
WITHOUT_WRITING = frozenset(("requires_grad_", "rename_"))


def is_active_anywhere(level: Level, x: Any) -> bool:
    """Whether the number or array `x` is active at this level or further out."""
    return any(id(x) in at.index for at in outwards(level))


def depends(level: Level, x: Any) -> bool:
    """Whether array `x` of a system is active, or lies in the memory of an active array of NumPy."""
    return is_active_anywhere(level, x) or is_in_array(level, x)


def finds_written(level: Level, a: np.ndarray) -> bool:
    """Whether array `a`, by its address, lies in a tensor into which differentiated numbers were written."""
    low, size = extent(a)
    for start, reference in list(written_roots.items()):
        root = reference()
        if root is not None and start < low + size and low < start + root.untyped_storage().nbytes():
            if is_active_anywhere(level, root):
                return True
    return False


#: What PyTorch programs do with a detached tensor on its way out.
LEAVING = OUT_OF | frozenset(
    "detach cpu clone contiguous double float half resolve_conj resolve_neg squeeze".split()
)
DETACHED = "_plaingrad_is_detached"


def check_leaves(f: Any, name: str, leaves: list[Any]) -> None:
    """Refuse tensors whose derivative is not sure: detached ones, and those whose memory was written by NumPy."""
    for x in leaves:
        marks = getattr(x, "__dict__", None)
        if not marks:
            continue
        if DETACHED in marks and name not in LEAVING:
            missing_rule(
                f,
                "A tensor is used that was detached: PyTorch's derivative ends there, that of the function does not. "
                "To end it, write plaingrad.stop_gradient(x); to go on, leave out .detach().",
            )
        if LENT in marks and not np.array_equal(*marks[LENT], equal_nan=True):
            missing_rule(f, "An array of NumPy that shares memory with this tensor was written; use a copy.")


def writes(name: str, kwargs: dict[str, Any]) -> bool:
    """Whether a function of PyTorch writes into an argument."""
    if kwargs.get("out") is not None or kwargs.get("inplace"):
        return True
    if name in WITHOUT_WRITING:
        return False
    if name.startswith("__"):
        return name == "__setitem__" or (
            name.startswith("__i") and name not in ("__invert__", "__index__", "__int__", "__iter__")
        )
    return name.endswith("_") or name in IN_PLACE


IN_PLACE = frozenset(
    (
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "ifloordiv",
        "imod",
        "ipow",
        "imatmul",
        "iand",
        "ior",
        "ixor",
        "setitem",
    )
)


ROOT, VERSION = "_plaingrad_root", "_plaingrad_version"


def note_written(root: Any) -> None:
    """Let views of `root` that were made before be known by their memory."""
    if len(written_roots) > 256:
        for place, reference in list(written_roots.items()):
            if reference() is None:
                written_roots.pop(place, None)
    written_roots[memory_of(root)] = weakref.ref(root)


def file_as(level: Level, x: Any, new: Any) -> None:
    """Let `x` depend on the inputs as `new` does, which has its numbers."""
    for at in outwards(level):
        if id(new) in at.index:
            if id(x) not in at.index:
                at.alive.append(x)
            at.index[id(x)] = at.index[id(new)]


def root_of(x: Any) -> Any:
    """The tensor that has all the memory of `x`, of which `x` is a view; or `x`."""
    root = x.__dict__.get(ROOT)
    return root if root is not None else x._base if x._base is not None else x


def view_like(x: Any) -> Any:
    """The function that takes, of a tensor in the place of that of which `x` is a view, the part that `x` is."""
    shape, is_real, is_conj, is_neg = (
        (tuple(x.shape), x.stride(), x.storage_offset()),
        not x.is_complex(),
        x.is_conj(),
        x.is_neg(),
    )

    def view(root: Any) -> Any:
        torch = sys.modules["torch"]
        part = (torch.view_as_real(root) if root.is_complex() and is_real else root).as_strided(*shape)
        part = part.conj() if is_conj else part
        return torch._neg_view(part) if is_neg else part

    return view


BUFFER = "_plaingrad_written_at"


def check_constant(level: Level, x: Any) -> None:
    """Refuse a tensor, not differentiated itself, that is a buffer which got what is."""
    marks = x.__dict__ if x._base is None else x._base.__dict__
    if BUFFER in marks and is_active_anywhere(level, marks[BUFFER]):
        missing_rule(
            type(x),
            "It is a buffer of a module, into which a call wrote what depends on the differentiated inputs.",
        )


def buffers_of(level: Level, f: Any, args: Any) -> list[tuple[Any, int]]:
    """The buffers that a call of the module `f`, or by `functional_call`, may write, with their versions.

    Those that it reads, in parts that are not training, must not depend on inputs by an earlier call.
    """
    module = args[0] if args and getattr(f, "__name__", "") == "functional_call" else f
    if not isinstance(module, sys.modules["torch"].nn.Module):
        return []
    found = []
    for part in module.modules():
        for x in part.buffers(recurse=False):
            if not part.training:
                check_constant(level, x)
            found.append((x, version_of(x)))
    return found


def note_buffers(buffers: list[tuple[Any, int]], leaves: list[Any]) -> None:
    """Mark the buffers that a call has written by an argument that was active: as long as that is, they are."""
    for x, version in buffers:
        if version_of(x) != version:
            x.__dict__[BUFFER] = min(leaves, key=lambda leaf: getattr(leaf, "nbytes", 0))


def check_writable(f: Any, x: Any) -> None:
    """Refuse to write into memory that is not a tensor's own."""
    root = root_of(x)
    why = None
    if x.requires_grad or root.requires_grad:
        why = "The tensor requires a gradient of PyTorch."
    elif LENT in x.__dict__ or LENT in root.__dict__ or not root.untyped_storage().resizable():
        why = "The tensor lies in memory of NumPy or of another library."
    elif x.dtype != root.dtype and not (root.is_complex() and x.dtype == root.real.dtype):
        why = "The tensor shows memory of numbers of another type."
    elif root.is_conj() or root.is_neg():
        why = "The tensor is a conjugate or negative by a mark alone."
    elif root.storage_offset() or not root.is_contiguous() or root.untyped_storage().nbytes() != root.nbytes:
        why = "The tensor is a part of a larger one, which is not known here."
    if why is not None:
        missing_rule(
            f, f"{why} Write into a copy (x = x.clone()), or use the form that returns a new tensor."
        )


def note_views(y: Any, leaves: list[Any]) -> None:
    """Let the views in a result know of what they are views."""
    homes = {memory_of(x): root_of(x) for x in leaves}
    of_arrays = {memory_of(x) for x in leaves if FROM_ARRAY in x.__dict__}
    for part in constants(y):
        if number_classes.system_of(part) is not None and part.numel() and memory_of(part) in homes:
            root = homes[memory_of(part)]
            if root is not part:
                part.__dict__[ROOT] = root
                part.__dict__[VERSION] = version_of(part)
                if memory_of(part) in of_arrays:
                    part.__dict__[FROM_ARRAY] = True


def memory_of(x: Any) -> int:
    """Where the memory of a tensor begins; 0 if it is no plain one."""
    return x.untyped_storage().data_ptr() if x.layout is sys.modules["torch"].strided else 0


def owns_memory(x: Any) -> bool:
    """Whether the memory of an array of a system is its own."""
    return not hasattr(x, "untyped_storage") or x.untyped_storage().resizable()
