"""A calculator: text is cut into tokens, parsed by recursive descent into nested tuples, and evaluated."""

import math
import re

TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:e-?\d+)?)|([A-Za-z_]\w*)|(.))")
FUNCTIONS = {"sin": math.sin, "cos": math.cos, "exp": math.exp, "log": math.log, "sqrt": math.sqrt}
PROGRAM = """
area = width * height
perimeter = 2 * (width + height)
ratio = width / height
damp = exp(-0.1 * perimeter) + 0.5
wave = sin(area) * cos(2 * ratio) - sin(perimeter / (1 + ratio ^ 2))
energy = sqrt(1 + area ^ 2) * log(2 + wave ^ 2) / damp
hours = if(energy - 3, energy, 3 + 0.1 * (energy - 3))
total = (energy + wave * damp - ratio ^ 3) / (1 + hours ^ 2) + ratio
total * 0.5 + max(width, height) - min(area, 2)
"""


def tokens(text):
    for number, name, other in TOKEN.findall(text):
        if number:
            yield "number", float(number)
        elif name:
            yield "name", name
        elif other.strip():
            yield "sign", other
    yield "end", None


class Parser:
    def __init__(self, text):
        self.rest = list(tokens(text))[::-1]

    def peek(self):
        return self.rest[-1][1]

    def take(self, expected=None):
        kind, value = self.rest.pop()
        if expected is not None and value != expected:
            raise SyntaxError(f"{expected!r} expected, {value!r} found")
        return kind, value

    def binary(self, signs, operand):
        left = operand()
        while self.peek() in signs:
            _, sign = self.take()
            left = (sign, left, operand())
        return left

    def sum(self):
        return self.binary(("+", "-"), self.product)

    def product(self):
        return self.binary(("*", "/"), self.signed)

    def signed(self):
        if self.peek() == "-":
            self.take()
            return ("neg", self.signed())
        return self.power()

    def power(self):
        base = self.atom()
        if self.peek() == "^":
            self.take()
            return ("^", base, self.signed())
        return base

    def atom(self):
        kind, value = self.take()
        if kind == "number":
            return ("number", value)
        if value == "(":
            inside = self.sum()
            self.take(")")
            return inside
        if self.peek() != "(":
            return ("name", value)
        self.take("(")
        arguments = [self.sum()]
        while self.peek() == ",":
            self.take()
            arguments.append(self.sum())
        self.take(")")
        return ("call", value, *arguments)


def evaluate(tree, names):
    head, *parts = tree
    if head == "number":
        return parts[0]
    if head == "name":
        return names[parts[0]]
    if head == "call":
        name, *arguments = parts
        if name == "if":
            return evaluate(arguments[1 if evaluate(arguments[0], names) > 0 else 2], names)
        values = [evaluate(argument, names) for argument in arguments]
        return {"max": max, "min": min, **FUNCTIONS}[name](*values)
    values = [evaluate(part, names) for part in parts]
    if head == "neg":
        return -values[0]
    left, right = values
    return {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
        "^": lambda: left**right,
    }[head]()


def run(text, names):
    result = None
    for line in filter(None, text.splitlines()):
        target, equals, expression = line.rpartition("=")
        result = evaluate(Parser(expression).sum(), names)
        if equals:
            names[target.strip()] = result
    return result


def main(p):
    return run(PROGRAM, {"width": p[0], "height": p[1]})


X = [1.3, 0.8]
