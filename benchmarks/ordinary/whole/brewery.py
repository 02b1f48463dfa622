"""A brewing controller as a state machine: enum, named tuples, match; heat and sugar follow simple laws."""

import math
from enum import Enum, auto
from typing import NamedTuple


class Phase(Enum):
    HEAT = auto()
    MASH = auto()
    BOIL = auto()
    COOL = auto()
    DONE = auto()


class State(NamedTuple):
    phase: Phase
    minute: int
    temperature: float
    starch: float
    sugar: float
    energy: float


class Recipe(NamedTuple):
    mash_at: float
    power: float
    loss: float
    boil_minutes: float
    activity: float


class Event(NamedTuple):
    minute: int
    text: str
    temperature: float


def conversion(temperature, recipe):
    """How fast enzymes work: a bump around 66 degrees."""
    return recipe.activity * math.exp(-(((temperature - 66.0) / 9.0) ** 2))


def advance(state, recipe, room=20.0):
    """One minute later."""
    match state.phase:
        case Phase.HEAT | Phase.BOIL:
            power = recipe.power
        case Phase.MASH:
            power = min(max(recipe.mash_at - state.temperature, 0.0) * 0.8, recipe.power)
        case _:
            power = -0.6 * recipe.power
    temperature = state.temperature + power - recipe.loss * (state.temperature - room)
    converted = conversion(temperature, recipe) * state.starch
    state = state._replace(
        minute=state.minute + 1,
        temperature=temperature,
        starch=state.starch - converted,
        sugar=state.sugar + converted,
        energy=state.energy + abs(power),
    )
    match state:
        case State(phase=Phase.HEAT, temperature=t) if t >= recipe.mash_at:
            return state._replace(phase=Phase.MASH)
        case State(phase=Phase.MASH, starch=starch) if starch < 0.08:
            return state._replace(phase=Phase.BOIL)
        case State(phase=Phase.BOIL, temperature=t) if t > 100.0:
            return state._replace(temperature=100.0 + 0.01 * (t - 100.0), phase=Phase.COOL)
        case State(phase=Phase.COOL, temperature=t) if t < 30.0:
            return state._replace(phase=Phase.DONE)
        case _:
            return state


def brew(recipe):
    state = State(Phase.HEAT, 0, 18.0, 1.0, 0.0, 0.0)
    log = []
    while state.phase is not Phase.DONE and state.minute < 400:
        after = advance(state, recipe)
        if after.phase is not state.phase:
            log.append(Event(after.minute, after.phase.name.lower(), after.temperature))
        state = after
    return state, log


def main(p):
    state, log = brew(Recipe(*p))
    hottest = max(event.temperature for event in log)
    return 10 * (1 - state.sugar) ** 2 + 0.01 * state.energy + 0.001 * hottest + 0.001 * state.temperature


X = [65.0, 2.2, 0.008, 60.0, 0.09]
