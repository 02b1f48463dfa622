"""`Rotation` as SciPy before 1.17 has it: a compiled class, whose numbers nobody else sees.

A differentiated rotation is an object of a class derived from it, which knows its quaternions as they are at this level;
the compiled part has their numbers. The formulas are those for newer versions, in `rotations`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import transform

from plaingrad.rulebook import Rule
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import is_active, outside, plainly, refuse
from plaingrad.rules.scipy.spatial import rotations as formulas

Rotation: Any = transform.Rotation
IS_COMPILED = formulas.ROTATION is None
Base: Any = Rotation if IS_COMPILED else object


class MovingRotation(Base):
    """A `Rotation` with differentiated quaternions."""

    moving: Any = None

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        """Its quaternions."""
        value = number(Rotation.as_quat, self, **given(canonical=canonical, scalar_first=scalar_first))
        return formulas.as_quat(value, self.moving, canonical, scalar_first)

    def as_matrix(self) -> Any:
        """Its matrices."""
        return formulas.as_matrix(number(Rotation.as_matrix, self), self.moving)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Its vectors."""
        return formulas.as_rotvec(number(Rotation.as_rotvec, self, degrees), self.moving, degrees)

    def as_mrp(self) -> Any:
        """Its modified Rodrigues parameters."""
        return formulas.as_mrp(number(Rotation.as_mrp, self), self.moving)

    def as_euler(self, seq: Any, degrees: bool = False) -> Any:
        """Its angles."""
        return formulas.as_euler(
            number(Rotation.as_euler, self, seq, degrees), self.moving, seq, degrees, False
        )

    def magnitude(self) -> Any:
        """By how much it turns."""
        return formulas.magnitude(number(Rotation.magnitude, self), self.moving)[()]

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Vectors turned."""
        return applied(self, vectors, inverse)

    def inv(self) -> Any:
        """The opposite rotation."""
        value = quaternions(Rotation.inv, self)
        return rotation(formulas.inv(value, self.moving))

    def mean(self, weights: Any = None) -> Any:
        """The mean rotation."""
        value = quaternions(Rotation.mean, self, weights)
        return rotation(formulas.mean(value, self.moving, weights))

    def __mul__(self, other: Any) -> Any:
        return composed(self, other)

    def __rmul__(self, other: Any) -> Any:
        return composed(other, self)

    def __pow__(self, n: Any, modulus: Any = None) -> Any:
        value = quaternions(Rotation.__pow__, self, n, modulus)
        return rotation(formulas.power(value, self.moving, n))

    def __getitem__(self, indexer: Any) -> Any:
        if self.moving.ndim == 1:
            return super().__getitem__(indexer)
        return rotation(self.moving[indexer])

    def __iter__(self) -> Any:
        return (self[n] for n in range(len(self)))

    def __setitem__(self, indexer: Any, value: Any) -> None:
        refuse(Rotation.__setitem__, "a compiled rotation is written")


def given(**options: Any) -> Any:
    """Options that this SciPy may not have, where they are not the default."""
    return {name: x for name, x in options.items() if x}


def known(r: Any) -> Any:
    """The quaternions of a rotation, differentiated or not."""
    moving = r.moving if isinstance(r, MovingRotation) else None
    return Rotation.as_quat(r) if moving is None else moving


@outside
def number(order: int, method: Any, r: Any, *args: Any, **options: Any) -> Any:
    """What a method gives, as a constant."""
    if isinstance(r, MovingRotation) and is_active(r.moving):
        return getattr(r, method.__name__)(*args, **options)
    return method(r, *args, **options)


@outside
def quaternions(order: int, make: Any, *args: Any, **options: Any) -> Any:
    """The quaternions of what a function makes, as constants."""
    first = args[0] if args else None
    if isinstance(first, MovingRotation) and is_active(first.moving):
        make, args = getattr(first, make.__name__), args[1:]
    return known(make(*args, **options))


@plainly
def compiled(q: Any) -> Any:
    """The compiled part."""
    return MovingRotation(np.array(q, float), normalize=False)


def rotation(q: Any) -> Any:
    """The rotation of quaternions."""
    r = compiled(q)
    r.moving = q
    return r


def composed(p: Any, q: Any) -> Any:
    """First q, then p."""
    if not isinstance(p, Rotation) or not isinstance(q, Rotation):
        return NotImplemented
    return rotation(formulas.compose_quat(both(p, q), known(p), known(q)))


@outside
def both(order: int, p: Any, q: Any) -> Any:
    """The product's quaternions, as constants."""
    if is_active(known(p)) or is_active(known(q)):
        return known(composed(p, q))
    return Rotation.as_quat(Rotation.__mul__(p, q))


def applied(self: Any, vectors: Any, inverse: Any = False) -> Any:
    """Vectors turned by a rotation that is differentiated, or not."""
    return formulas.apply(number(Rotation.apply, self, vectors, inverse), known(self), vectors, inverse)


# -- functions that make rotations --------------------------------------------------------------------------------------


def from_quat(quat: Any, *, scalar_first: Any = False) -> Any:
    """Of quaternions of any length."""
    value = quaternions(Rotation.from_quat, quat, **given(scalar_first=scalar_first))
    return rotation(formulas.from_quat(value, quat, True, True, scalar_first))


def from_matrix(matrix: Any, *, assume_valid: Any = False) -> Any:
    """Of matrices."""
    value = quaternions(Rotation.from_matrix, matrix, **given(assume_valid=assume_valid))
    return rotation(formulas.from_matrix(value, matrix, assume_valid or BY_ENTRIES))


def from_rotvec(rotvec: Any, degrees: Any = False) -> Any:
    """Of vectors."""
    return rotation(formulas.from_rotvec(quaternions(Rotation.from_rotvec, rotvec, degrees), rotvec, degrees))


def from_mrp(mrp: Any) -> Any:
    """Of modified Rodrigues parameters."""
    return rotation(formulas.from_mrp(quaternions(Rotation.from_mrp, mrp), mrp))


def from_euler(seq: Any, angles: Any, degrees: Any = False) -> Any:
    """Of angles."""
    return rotation(
        formulas.from_euler(quaternions(Rotation.from_euler, seq, angles, degrees), seq, angles, degrees)
    )


def concatenate(rotations: Any) -> Any:
    """One after the other."""
    if isinstance(rotations, Rotation):
        return rotation(known(rotations) * 1.0)
    return rotation(np.concatenate([np.reshape(known(r), (-1, 4)) for r in rotations]))


def constructed(quat: Any, normalize: Any = True, copy: Any = True, scalar_first: Any = False) -> Any:
    """`Rotation(quat)`."""
    if normalize:
        return from_quat(quat, **given(scalar_first=scalar_first))
    return rotation(formulas.rolled(formulas.numbers(quat), -1, scalar_first))


def of_class(definition: Any) -> Any:
    """The definition of a class method, which gets the class first."""
    return lambda cls, *args, **kwargs: definition(*args, **kwargs)


def enter() -> None:
    """Where the class is compiled; what has no formula here is refused as compiled code."""
    makers = (from_quat, from_matrix, from_rotvec, from_mrp, from_euler, concatenate)
    for definition in makers:
        function = vars(Rotation).get(definition.__name__)
        if isinstance(function, classmethod):  # in newer versions: of a function that gets the class
            function, definition = function.__func__, of_class(definition)
        if function is not None:
            keep(Rule(function, "composed", definition=definition, source=f"{__file__}:1"))
    keep(Rule(vars(Rotation)["apply"], "composed", definition=applied, source=f"{__file__}:1"))
    keep(Rule(Rotation, "composed", definition=constructed, source=f"{__file__}:1"))


def by_entries() -> bool:
    """Whether this SciPy reads the quaternion off the entries, also of a matrix that is no rotation."""
    m = np.eye(3) + 0.01 * np.arange(9.0).reshape(3, 3)
    q = formulas.quats.of_orthogonal(m, formulas.largest(m))
    return bool(np.allclose(np.abs(Rotation.from_matrix(m).as_quat()), np.abs(q), rtol=1e-12))


BY_ENTRIES = IS_COMPILED and by_entries()
if IS_COMPILED:
    enter()
