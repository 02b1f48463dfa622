"""Agent economics: households and firms with slots and properties trade each season; taxes are to even out wealth."""

import math
import random


class Household:
    __slots__ = ("name", "_wealth", "patience", "skill", "history")

    def __init__(self, name, wealth, patience, skill):
        self.name, self._wealth, self.patience, self.skill = name, wealth, patience, skill
        self.history = []

    @property
    def wealth(self):
        return self._wealth

    @wealth.setter
    def wealth(self, amount):
        if amount < 0.0:
            amount = 0.0
        self._wealth = amount
        self.history.append(amount)

    @property
    def comfort(self):
        return math.log(1.0 + self._wealth)

    def wanted(self, price):
        return (1.0 - self.patience) * self.wealth / price


class Firm:
    __slots__ = ("output", "price", "productivity", "staff")

    def __init__(self, productivity):
        self.productivity, self.price, self.output = productivity, 1.0, 0.0
        self.staff = []

    def hire(self, household):
        self.staff.append(household)

    @property
    def labour(self):
        return sum(h.skill for h in self.staff)

    def produce(self):
        self.output = self.productivity * self.labour**0.7

    def adjust(self, demand, speed):
        self.price *= math.exp(speed * (demand - self.output) / (demand + self.output))


class State:
    def __init__(self, rate, floor):
        self.rate, self.floor, self.purse = rate, floor, 0.0

    def tax(self, income):
        due = self.rate * max(income - self.floor, 0.0)
        self.purse += due
        return income - due

    def share(self, households):
        each = self.purse / len(households)
        self.purse = 0.0
        for h in households:
            h.wealth += each


def season(households, firms, state, speed):
    for firm in firms:
        firm.produce()
        demand = sum(h.wanted(firm.price) for h in households) / len(firms)
        sold = min(demand, firm.output)
        for h in households:
            h.wealth -= sold * firm.price / len(households)
        earned = sold * firm.price
        for h in firm.staff:
            h.wealth += state.tax(earned * h.skill / firm.labour)
        firm.adjust(demand, speed)
    state.share(households)


def main(p):
    rate, floor, speed, *productivities = p
    draw = random.Random(4)
    households = [
        Household(f"h{k}", draw.uniform(1, 5), draw.uniform(0.3, 0.8), draw.uniform(0.5, 2)) for k in range(9)
    ]
    firms = [Firm(x) for x in productivities]
    for k, h in enumerate(households):
        firms[k % len(firms)].hire(h)
    state = State(rate, floor)
    for _ in range(12):
        season(households, firms, state, speed)
    comforts = [h.comfort for h in households]
    mean = sum(comforts) / len(comforts)
    spread = sum((c - mean) ** 2 for c in comforts)
    swings = sum((b - a) ** 2 for h in households for a, b in zip(h.history, h.history[5:]))
    return spread - mean + 0.001 * swings


X = [0.3, 0.2, 0.4, 1.0, 1.2, 0.9]
