"""pydantic: models validated by compiled code, which copies numbers; what is constructed without it keeps derivatives."""

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


def test_validation_of_active_numbers_is_refused(refuses):
    refuses(lambda x: Rate(rate=x).rate, 1.5, called="", says="pydantic_core.SchemaValidator")
    refuses(lambda x: sum(Rates(rates=x).rates), [1.5, 2.5], called="", says="pydantic_core.SchemaValidator")
    refuses(lambda x: Point(x).x * 2.0, 1.5, called="", says="pydantic_core.ArgsKwargs")


def test_text_of_active_numbers_is_refused(refuses):
    error = plaingrad.errors.RoundTripError
    refuses(lambda x: Rate(rate=str(x)).rate, 1.5123, called="pydantic_core.", error=error)
