"""pydantic: compiled code validates models and keeps the numbers in them; what it converts is refused."""

import collections
import datetime
import decimal
import math
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import plaingrad

pydantic = pytest.importorskip("pydantic")


class Rate(pydantic.BaseModel):
    rate: float
    scale: float = 2.0

    @pydantic.computed_field
    @property
    def doubled(self) -> float:
        return self.rate * self.scale


class Rates(pydantic.BaseModel):
    rates: list[float]


@pydantic.dataclasses.dataclass
class Point:
    x: float


class Settings(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    weight: float = 3.0
    powers: list[int] = [1, 2]


def test_a_model_of_constants_is_used_freely(agrees):
    settings = Settings()
    agrees(lambda x: sum(settings.weight * x**p for p in settings.powers), 1.5)
    agrees(lambda x: x * Rate(rate=3.0).doubled + len(Rates(rates=[1, 2]).rates), 1.5)


def test_a_model_constructed_without_validation(agrees):
    agrees(lambda x: Rate.model_construct(rate=x).doubled * x, 1.5)
    agrees(lambda x: Rate(rate=1.0).model_copy(update={"rate": x}).rate * 2.0, 1.5)


class Constrained(pydantic.BaseModel):
    a: pydantic.PositiveFloat
    b: Annotated[float, pydantic.Field(gt=0, lt=100, strict=True)] = 2.0
    union: int | float = 1
    pair: tuple[float, float] = (1.0, 2.0)
    table: dict[str, float] = {}
    inner: Rate | None = None


class Squared(pydantic.BaseModel):
    a: float
    b: Annotated[float, pydantic.AfterValidator(lambda v: v * 3.0)] = 1.0
    total: float = 0.0
    _hidden: float = 0.0

    @pydantic.field_validator("a")
    @classmethod
    def square(cls, v):
        SEEN.append(v * 5.0)
        return v * v

    @pydantic.model_validator(mode="after")
    def add(self):
        self.total = self.a + self.b
        return self

    def model_post_init(self, context):
        self._hidden = self.a * 7.0

    @pydantic.field_serializer("b")
    def halve(self, v):
        return v / 2.0


class Assigned(pydantic.BaseModel, validate_assignment=True):
    a: float
    b: float = 1.0


class WithArray(pydantic.BaseModel, arbitrary_types_allowed=True):
    a: np.ndarray


@pydantic.validate_call
def area(a: float, b: float) -> float:
    return a * b


class Source:
    def __init__(self, x):
        self.x = x

    @property
    def rate(self):
        return self.x * self.x

    scale = 3.0


SEEN = []
Numbers = pydantic.TypeAdapter(list[float])


def assigned(x):
    m = Assigned(a=1.0)
    m.a = x * x
    return m.a * m.b * x


def with_side_effects(x):
    SEEN.clear()
    m = Squared(a=x, b=x)
    return m.a * m.b + m.total * x + m._hidden + SEEN[0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: Rate(rate=x).doubled * x, lambda x: Rate(rate=np.float64(x) * 2.0).rate * x,
        lambda x: Constrained(a=x, b=x * x, union=x + 1.0, pair=(x, x * x), table={"q": x * 3.0}).pair[1] * x,
        lambda x: Constrained(a=1, table={"q": x * 3.0}, union=x, inner={"rate": x * x}).inner.doubled * x,
        lambda x: Constrained(a=x, inner=Rate(rate=x)).inner.rate * x, lambda x: sum(Numbers.validate_python([x, x * x])),
        lambda x: sum(Numbers.validate_python({"a": x, "b": 2}.values())), lambda x: Point(x).x * x,
        lambda x: sum(Numbers.validate_python(list(np.array([x, x * x])))), lambda x: area(x, b=x * 2.0),
        lambda x: Rate.model_validate({"rate": x}).model_copy(deep=True).rate * x, assigned, with_side_effects,
        lambda x: Rate.model_validate(Source(x), from_attributes=True).doubled, lambda x: Rate(rate=x).model_dump()["rate"] * x,
        lambda x: Rate(rate=x * x).model_dump(mode="json")["doubled"] * x, lambda x: Squared(a=x, b=x).model_dump()["b"] * x,
        lambda x: Constrained(a=x, inner=Rate(rate=x)).model_dump()["inner"]["doubled"] * x,
        lambda x: (x if Rate(rate=x) == Rate(rate=x) else 0.0) * Rates(rates=[1, x]).rates[1],
        lambda x: pydantic.RootModel[list[float]]([x, x * x]).root[1] * x, lambda x: (WithArray(a=np.array([x, 2.0])).a * x).sum(),
        lambda x: len(Rate(rate=x).model_dump_json()[:3]) * x,
    ],
)  # fmt: skip
def test_numbers_keep_their_derivatives_through_validation_and_dumps(agrees, f):
    agrees(f, 1.3)
    second = (plaingrad.grad(f)(1.3 + 1e-5) - plaingrad.grad(f)(1.3 - 1e-5)) / 2e-5
    assert plaingrad.jvp(plaingrad.grad(f), (1.3,), (1.0,))[1] == pytest.approx(second, rel=1e-6, abs=1e-8)
    assert plaingrad.jvp(f, (1.3,), (1.0,))[1] == pytest.approx(plaingrad.grad(f)(1.3), rel=1e-12)


class Complex(pydantic.BaseModel):
    a: complex


class Exact(pydantic.BaseModel):
    a: decimal.Decimal


class Time(pydantic.BaseModel):
    a: datetime.timedelta


class BySine(pydantic.BaseModel):
    a: Annotated[float, pydantic.AfterValidator(math.sin)]


class Wrapped(pydantic.BaseModel):
    a: Annotated[float, pydantic.WrapValidator(lambda v, handler: handler(v) * 2.0)]


class Chosen(pydantic.BaseModel):
    a: Literal["x"] | float
    b: Any = None


class Text(pydantic.BaseModel, coerce_numbers_to_str=True):
    a: str


@pytest.mark.parametrize(
    "f",
    [
        lambda x: Complex(a=x).a.real * x, lambda x: float(Exact(a=x).a) * x, lambda x: Time(a=x).a.total_seconds() * x,
        lambda x: BySine(a=x).a * x, lambda x: Wrapped(a=x).a * x, lambda x: float(Text(a=x).a) * x,
        lambda x: sum(Numbers.validate_python(v for v in np.array([x, 2.0]))), lambda x: Chosen(a=np.float64(x)).a * x,
        lambda x: sum(Numbers.validate_python(iter([np.float64(x)]))) * x, lambda x: Chosen(a=1.0, b=x).b * x,
        lambda x: sum(Numbers.validate_python(collections.deque([np.float64(x), x]))),
        lambda x: sum(Numbers.validate_python(map(np.sin, [x, x]))),
        lambda x: Rate.model_validate_json(Rate(rate=x).model_dump_json()).rate * x,
    ],
)  # fmt: skip
def test_what_is_converted_or_not_seen_is_right_or_refused(f):
    f(1.3)
    exact = (f(1.3 + 1e-5) - f(1.3 - 1e-5)) / 2e-5
    for slope in (lambda: plaingrad.grad(f)(1.3), lambda: plaingrad.jvp(f, (1.3,), (1.0,))[1]):
        try:
            got = slope()
        except plaingrad.errors.PlaingradError as refusal:
            assert ".py:" in str(refusal)
        else:
            assert got == pytest.approx(exact, rel=1e-5)


def test_a_converted_nan_is_refused_like_other_numbers():
    with pytest.raises(plaingrad.MissingRuleError):
        plaingrad.grad(lambda x: Complex(a=x).a.real * x)(math.nan)


def test_a_validation_error_is_that_of_a_plain_call():
    def f(x):
        return Constrained(a=-x).a

    with pytest.raises(pydantic.ValidationError) as plain:
        f(1.5)
    with pytest.raises(pydantic.ValidationError) as found:
        plaingrad.grad(f)(1.5)
    assert str(found.value) == str(plain.value)


def test_text_of_active_numbers_is_refused(refuses):
    error = plaingrad.errors.RoundTripError
    refuses(lambda x: Rate(rate=str(x)).rate, 1.5123, called="pydantic_core.", error=error)
