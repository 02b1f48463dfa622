"""Chemical kinetics with generators: reactions parsed from text, a stiff-ish integration streamed to an observer."""

import math

REACTIONS = """
A + B -> C   ; 1.2e0 ; 0.30
C -> A + B   ; 0.4e0 ; 0.50
C + B -> D   ; 0.8e0 ; 0.45
D -> E       ; 0.6e0 ; 0.20
E + A -> 2 B ; 0.1e0 ; 0.35
"""
GAS = 8.314e-3


def parse(text):
    """Yields (consumed, produced, prefactor, activation energy)."""

    def side(part):
        found = {}
        for term in part.split("+"):
            *count, name = term.split()
            found[name] = found.get(name, 0) + (int(count[0]) if count else 1)
        return found

    for line in filter(None, map(str.strip, text.splitlines())):
        equation, prefactor, energy = line.split(";")
        left, right = equation.split("->")
        yield side(left), side(right), float(prefactor), float(energy)


def rates(reactions, scales, temperature):
    for (consumed, produced, prefactor, energy), scale in zip(reactions, scales):
        yield consumed, produced, prefactor * scale * math.exp(-energy / (GAS * temperature) / 100)


def slope(mixture, laws):
    change = dict.fromkeys(mixture, 0.0)
    for consumed, produced, k in laws:
        speed = k
        for name, count in consumed.items():
            speed = speed * mixture[name] ** count
        for name, count in consumed.items():
            change[name] -= count * speed
        for name, count in produced.items():
            change[name] += count * speed
    return change


def evolve(mixture, laws, dt):
    """Yields (time, mixture) for ever, by Heun's method."""
    time = 0.0
    while True:
        yield time, mixture
        first = slope(mixture, laws)
        guess = {name: c + dt * first[name] for name, c in mixture.items()}
        second = slope(guess, laws)
        mixture = {name: c + dt / 2 * (first[name] + second[name]) for name, c in mixture.items()}
        time += dt


def observe(stream, until, every):
    for k, (time, mixture) in enumerate(stream):
        if time > until:
            return
        if k % every == 0:
            yield mixture["D"] + 0.5 * mixture["E"]


def main(p):
    reactions = list(parse(REACTIONS))
    laws = list(rates(reactions, p[:5], p[5]))
    start = {"A": p[6], "B": 1.5, "C": 0.0, "D": 0.0, "E": p[7]}
    seen = observe(evolve(start, laws, 0.05), until=2.0, every=4)
    return sum((signal - 0.1 * k) ** 2 for k, signal in enumerate(seen))


X = [1.0, 0.9, 1.1, 1.0, 1.2, 300.0, 1.0, 0.1]
