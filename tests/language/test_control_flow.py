"""Branches, loops, match, short circuits: the derivative is that of the path which was taken."""

import cmath
import math
from dataclasses import dataclass

import numpy as np
import pytest

import plaingrad
from cases import check


@pytest.mark.parametrize(("x", "slope"), [(-2.0, 0.01), (0.5, 1.0), (3.0, math.exp(-2.0))])
def test_if_elif_else_differentiates_the_branch_that_ran(x, slope):
    def unit(v):
        if v < 0.0:
            return 0.01 * v
        elif v <= 1.0:
            return v
        else:
            return 2.0 - math.exp(1.0 - v)

    check(unit, x, gradient=slope)


def test_newtons_square_root_runs_until_it_has_converged():
    def root(a):
        guess = a
        while True:
            better = 0.5 * (guess + a / guess)
            if abs(better - guess) < 1e-15 * better:
                break
            guess = better
        return better

    check(root, 7.0, gradient=0.5 / math.sqrt(7.0))


def test_while_else_runs_its_else_only_when_not_broken():
    def last(x, limit):
        n = 0
        while n < 5:
            if x > limit:
                out = x * 10.0
                break
            x = x * x
            n += 1
        else:
            out = x + limit
        return out

    check(last, 2.0, 10.0, gradient=(10.0 * 4 * 2.0**3, 0.0))
    check(last, 0.9, 10.0, gradient=(32 * 0.9**31, 1.0))


def test_for_else_with_break_and_continue_sums_the_right_terms():
    def total(x):
        s = 0.0
        for k in range(10):
            if k % 2:
                continue
            if k > 6:
                break
            s += x**k
        else:
            s = -s
        for k in range(3):
            if k == 7:
                break
        else:
            s *= 2.0
        return s

    x = 1.3
    check(total, x, gradient=2.0 * (2 * x + 4 * x**3 + 6 * x**5))


def test_break_leaves_only_the_inner_of_nested_loops():
    def grid(x, y):
        s = 0.0
        for i in range(1, 4):
            for j in range(1, 6):
                if j > i:
                    break
                s += i * x * y**j
        return s

    x, y = 0.7, 1.2
    dx = sum(i * y**j for i in range(1, 4) for j in range(1, i + 1))
    dy = sum(i * x * j * y ** (j - 1) for i in range(1, 4) for j in range(1, i + 1))
    check(grid, x, y, gradient=(dx, dy))


def test_a_loop_that_runs_zero_times_passes_the_cotangent_through():
    def f(x):
        for _ in range(0):
            x = x * 100.0
        while x < 0:
            x = -x
        return x

    check(f, 2.5, gradient=1.0)


def test_the_collatz_walk_of_a_number_follows_the_branches_of_its_integer_part():
    def walk(x):
        n = int(x)
        while n != 1:
            if n % 2 == 0:
                n, x = n // 2, x / 2.0
            else:
                n, x = 3 * n + 1, 3.0 * x + 1.0
        return x

    slope, n = 1.0, 27
    while n != 1:
        n, slope = (n // 2, slope / 2.0) if n % 2 == 0 else (3 * n + 1, slope * 3.0)
    check(walk, 27.25, gradient=slope, rtol=1e-11)


def test_chained_comparisons_evaluate_their_middle_once():
    calls = []

    def noted(v):
        calls.append(1)
        return v * 1.0

    def f(x):
        if 0.0 < noted(x) < 2.0 <= 2.0:
            return x**3
        return -x

    check(f, 1.5, gradient=3 * 1.5**2, setup=calls.clear, state=lambda: calls)
    check(f, 2.5, gradient=-1.0, setup=calls.clear, state=lambda: calls)
    assert len(calls) == 1


def test_ternaries_nest():
    def sign_cube(x):
        return x**3 if x > 1 else (-x if x > 0 else x * x if x > -1 else 0.0)

    for x, slope in [(2.0, 12.0), (0.5, -1.0), (-0.5, -1.0), (-3.0, 0.0)]:
        check(sign_cube, x, gradient=slope)


def test_and_or_return_their_operands_not_booleans():
    def f(x, y):
        first = x and y
        second = x or y
        third = (0.0 and x) or y
        fourth = (not x) or y * y
        return first * 2.0 + second * 3.0 + third * 5.0 + fourth

    check(f, 1.5, 2.5, gradient=(3.0, 2.0 + 5.0 + 2 * 2.5))
    check(f, 0.0, 2.5, gradient=(2.0, 3.0 + 5.0))


def test_a_short_circuit_skips_the_side_effect_of_its_right_side():
    log = []

    def noted(v):
        log.append("ran")
        return v

    def f(x):
        y = x > 3 and noted(x * 2)
        z = x < 3 or noted(x)
        return (y or x) * (2.0 if z is True else 7.0)

    check(f, 2.0, gradient=2.0, setup=log.clear, state=lambda: log)
    check(f, 4.0, gradient=2 * 7.0, setup=log.clear, state=lambda: log)


def test_the_walrus_binds_in_conditions_comprehensions_and_arguments():
    def f(x):
        s = 0.0
        while (s := s + x) < 5.0:
            pass
        if (y := s * x) > 0:
            s = y
        kept = [z for k in range(4) if (z := k * x) > 1.0]
        return s + sum(kept) + z * abs(w := x - 10.0) + w

    x = 1.5
    n = 4  # 1.5 * 4 = 6 is the first sum that is not below 5
    check(f, x, gradient=2 * n * x + (1 + 2 + 3) + (30.0 - 6 * x) + 1.0)


@dataclass
class Circle:
    radius: float


@dataclass
class Box:
    width: float
    height: float


class Unit:
    scale = 3.0


def area(shape):
    match shape:
        case Circle(radius=r) if r > 100:
            return 0.0
        case Circle(r):
            return math.pi * r * r
        case Box(w, height=h) | (w, h):
            return w * h
        case [first, *middle, last]:
            return first * last + sum(middle)
        case {"kind": "scaled", "by": k, "of": inner, **rest}:
            return k * area(inner) + sum(rest.values())
        case float() | int() as v if v == Unit.scale:
            return -v
        case Unit.scale:
            raise AssertionError
        case float(v):
            return v**3
        case _:
            return 0.0


Circle.__match_args__ = ("radius",)


def test_match_takes_objects_apart_by_class_pattern():
    check(lambda r: area(Circle(r * 2.0)), 1.5, gradient=8 * math.pi * 1.5)
    check(lambda w, h: area(Box(w, h)), 2.0, 5.0, gradient=(5.0, 2.0))


def test_match_takes_sequences_apart_with_a_star():
    check(lambda a, b: area((a, b)), 2.0, 5.0, gradient=(5.0, 2.0))
    check(lambda a, b, c, d: area([a, b, c, d]), 2.0, 3.0, 4.0, 5.0, gradient=(5.0, 1.0, 1.0, 2.0))


def test_match_takes_mappings_apart_and_keeps_the_rest():
    def f(k, r, e):
        return area({"kind": "scaled", "by": k, "of": Circle(r), "extra": e, "more": e * e})

    k, r, e = 2.0, 1.5, 0.5
    check(f, k, r, e, gradient=(math.pi * r * r, 2 * k * math.pi * r, 1 + 2 * e))


def test_match_captures_numbers_with_guards_values_and_self_patterns():
    check(area, 2.0, gradient=12.0)
    check(area, 3.0, gradient=-1.0)
    check(lambda x: area("text") + x, 3.0, gradient=1.0)


def test_match_on_a_literal_equal_to_the_active_number_compares_by_value():
    def f(x):
        match x:
            case 0.5:
                return x * 10.0
            case 1.0 | 2.0:
                return x * 20.0
            case other:
                return other * 30.0

    for x, slope in [(0.5, 10.0), (2.0, 20.0), (3.0, 30.0)]:
        check(f, x, gradient=slope)


def test_match_on_a_command_list_runs_a_small_stack_machine():
    def run(program, x):
        stack = []
        for instruction in program:
            match instruction:
                case ("push", "x"):
                    stack.append(x)
                case ("push", float(v)):
                    stack.append(v)
                case ("add",):
                    stack.append(stack.pop() + stack.pop())
                case ("mul",):
                    stack.append(stack.pop() * stack.pop())
                case ("dup",):
                    stack.append(stack[-1])
                case ("repeat", int(n), *body):
                    for _ in range(n):
                        stack.append(run([("push", stack.pop()), *body], x))
        return stack.pop()

    program = [("push", "x"), ("dup",), ("mul",), ("push", 3.0), ("add",), ("repeat", 2, ("dup",), ("mul",))]
    x = 0.7
    check(lambda v: run(program, v), x, gradient=4 * (x * x + 3) ** 3 * 2 * x)


def test_bisection_is_a_constant_of_the_target_but_its_result_can_be_polished():
    def polished_root(a):
        low, high = 0.0, 10.0
        for _ in range(80):
            middle = (low + high) / 2
            if middle * middle * middle < a:
                low = middle
            else:
                high = middle
        return middle - (middle**3 - a) / (3 * middle**2)

    check(polished_root, 5.0, gradient=5.0 ** (-2 / 3) / 3)


def test_recursion_with_two_branches_counts_every_path():
    def tree(x, depth):
        if depth == 0:
            return x
        return tree(x * 2.0, depth - 1) + tree(x * x, depth - 1)

    def slope(x, depth):
        if depth == 0:
            return 1.0
        return 2.0 * slope(2.0 * x, depth - 1) + 2.0 * x * slope(x * x, depth - 1)

    check(lambda x: tree(x, 5), 0.9, gradient=slope(0.9, 5))


def test_ackermann_style_mutual_recursion_carries_the_value():
    def even(x, n):
        return x if n == 0 else odd(x * 1.5, n - 1)

    def odd(x, n):
        return even(x + 1.0, n - 1)

    check(lambda x: even(x, 10), 0.3, gradient=1.5**5)


def test_a_loop_variable_survives_its_loop():
    def f(x):
        for y in (x, x * x, x * x * x):
            pass
        return y

    check(f, 1.1, gradient=3 * 1.1**2)


def test_return_inside_try_finally_inside_a_loop_returns_the_value_made_first():
    trace = []

    def f(x):
        for k in range(5):
            try:
                if k == 2:
                    y = x * k
                    return y
            finally:
                x = x * 3.0
                trace.append(k)

    check(f, 2.0, gradient=9.0 * 2, setup=trace.clear, state=lambda: trace)


def test_a_finally_that_continues_drops_the_exception_and_keeps_the_value():
    def f(x):
        s = 0.0
        for k in range(4):
            try:
                s += x / (k - 2.0)
            except ZeroDivisionError:
                s += x * x
                continue
            else:
                s += 1.0
            finally:
                s *= 2.0
        return s

    # s = ((((x/-2 + 1)*2 + x/-1 + 1)*2 + x*x)*2 + x + 1)*2
    x = 1.7
    check(f, x, gradient=2 * (1 + 2 * (2 * x + 2 * (-1.0 + 2 * (-0.5)))))


def test_truth_of_a_number_does_not_disturb_it():
    def f(x):
        return (x * x if x else 5.0) + (not x) * x + bool(x) * x

    check(f, 3.0, gradient=7.0)
    check(f, 0.0, gradient=1.0)


def test_identity_tests_hold_inside_a_differentiated_function():
    def f(x):
        y = x
        holder = [x]
        return x**2 if y is x and holder[0] is x and x in holder and x is not None else x

    check(f, 3.0, gradient=6.0)


def test_comparing_the_argument_with_itself_and_with_a_constant_gives_plain_booleans():
    def f(x):
        assert (x == x) is True and (x != 2.0) is True and (x >= 2) is True
        return x * (x > 1) * True

    check(f, 3.0, gradient=1.0)


def test_the_conditional_import_and_delete_statements_leave_values_alone():
    def f(x):
        import math as m

        y = m.sin(x)
        z = y * x
        del y
        try:
            y  # noqa: B018, F821
        except UnboundLocalError:
            z = z * 2.0
        return z

    x = 0.8
    check(f, x, gradient=2 * (math.cos(x) * x + math.sin(x)))


def test_an_int_argument_is_taken_as_a_real_number():
    def cube(n):
        total = n
        for _ in range(2):
            total = total * n
        return total

    assert plaingrad.value_and_grad(cube)(2) == (8, 12.0)
    assert isinstance(plaingrad.grad(cube)(2), float)


def test_a_complex_argument_goes_through_branches_and_loops():
    def escape(c):
        z = 0j
        for _ in range(3):
            z = z * z + c
            if abs(z) > 1e3:
                break
        return z.real

    c = 0.3 + 0.2j
    # z3 = (c*c + c)**2 + c is holomorphic: the cotangent is conj(dz/dc)
    slope = 2 * (c * c + c) * (2 * c + 1) + 1
    check(escape, c, gradient=slope.conjugate())


@pytest.mark.parametrize(
    ("f", "point", "direction", "slope"),
    [
        # beside the cut the derivative is that of the side that the signed zero says the primal took
        (cmath.acos, complex(2, 0.0), 1, -1j / math.sqrt(3)),
        (cmath.acos, complex(2, -0.0), 1, 1j / math.sqrt(3)),
        (cmath.asin, complex(2, 0.0), 1, 1j / math.sqrt(3)),
        (cmath.asin, complex(-2, -0.0), 1, 1j / math.sqrt(3)),
        (cmath.acosh, complex(-2, -0.0), 1, -1 / math.sqrt(3)),
        (cmath.acosh, complex(-2, 0.0), 1, -1 / math.sqrt(3)),
        (cmath.asinh, complex(-0.0, 2), 1j, -1 / math.sqrt(3)),
        (cmath.asinh, complex(0.0, 2), 1j, 1 / math.sqrt(3)),
        (cmath.log, complex(-2, -0.0), 1, -0.5),
        (cmath.sqrt, complex(-4, 0.0), 1, -0.25j),
        (cmath.sqrt, complex(-4, -0.0), 1, 0.25j),
        (cmath.atanh, complex(2, 0.0), 1, -1 / 3),
    ],
)
def test_on_a_branch_cut_the_derivative_is_that_of_the_branch_the_primal_took(f, point, direction, slope):
    def moved(t):
        return complex(point.real + t, point.imag) if direction == 1 else complex(point.real, point.imag + t)

    h = 1e-6
    along = (f(moved(h)) - f(moved(-h))) / (2 * h)
    assert abs(along - slope) < 1e-8, "the expected slope is that of the primal"
    assert plaingrad.grad(lambda t: f(moved(t)).real)(0.0) == pytest.approx(complex(slope).real, abs=1e-12)
    assert plaingrad.grad(lambda t: f(moved(t)).imag)(0.0) == pytest.approx(complex(slope).imag, abs=1e-12)


def test_a_real_number_beyond_the_domain_of_acos_lies_on_the_cut():
    slope = 1 / math.sqrt(1.7**2 - 1)
    check(lambda x: cmath.acos(x).imag, 1.7, gradient=-slope)
    check(lambda x: cmath.asin(x).imag, 1.7, gradient=slope)
    check(lambda x: float(np.arcsinh(np.array([complex(-0.0, x)]))[0].real), 1.7, gradient=-slope)


def test_float32_scalars_stay_float32_through_a_loop():
    def f(x):
        y = x
        for _ in range(3):
            y = y * x if y > 0 else -y
        return y

    check(f, np.float32(1.5), gradient=np.float32(4 * 1.5**3), rtol=1e-6)


def test_a_zero_dimensional_array_argument_is_used_as_a_number():
    def f(a):
        s = a * 0.0
        while s < 4.0:
            s = s + a
        return s * a if a > 0 else s

    check(f, np.array(1.5), gradient=np.array(2 * 3 * 1.5))


def test_many_short_lived_numbers_do_not_lend_their_derivative_to_later_constants():
    def f(x):
        s = x
        for k in range(200):
            t = x * k  # active, dies at once: its address is reused
            del t
            u = float(k) * 1.5
            s = s + u
        return s

    check(f, 2.0, gradient=1.0)


def test_constants_between_active_numbers_do_not_inherit_their_derivative():
    def f(x):
        s = 0.0
        for k in range(50):
            a = x * k
            b = k * 0.5
            a = b
            c = k * 0.25
            s += a + c + x
        return s

    check(f, 2.0, gradient=50.0)


def test_a_global_that_is_the_very_argument_object_is_a_constant():
    scope = {"X0": 3.0}
    exec("def f(x):\n    return x * X0 + X0 if x is not None else 0.0", scope)
    check(scope["f"], scope["X0"], gradient=3.0)


def test_a_default_that_is_the_very_argument_object_is_a_constant():
    three = 3.0
    check(lambda x, c=three: x * c * c, three, gradient=9.0)


def test_horner_in_a_loop_over_a_reversed_list_of_coefficients():
    def poly(cs, x):
        y = 0.0
        for c in reversed(cs):
            y = y * x + c
        return y

    cs, x = [1.0, 1.0, -2.0, 0.5], 1.3
    check(poly, cs, x, gradient=([x**k for k in range(4)], 1.0 - 4.0 * x + 1.5 * x * x))


def test_gradient_descent_written_inside_the_function_is_differentiated_through():
    def trained(rate):
        w = 5.0
        for step in range(6):
            if step == 3:
                rate = rate / 2.0
            w = w - rate * 2.0 * w
        return w * w

    r = 0.1
    w = 5.0 * (1 - 2 * r) ** 3 * (1 - r) ** 3
    dw = 5.0 * (3 * (1 - 2 * r) ** 2 * -2 * (1 - r) ** 3 - (1 - 2 * r) ** 3 * 3 * (1 - r) ** 2)
    check(trained, r, gradient=2 * w * dw)


def test_a_long_if_chain_needs_extended_jumps_and_still_picks_its_branch():
    lines = ["def f(x, n):", "    y = x"]
    for k in range(300):
        lines += [f"    if n == {k}:", f"        y = y * {k}.5 + x * x - x / {k + 1}.0"]
    lines += ["    return y"]
    scope = {}
    exec("\n".join(lines), scope)
    check(lambda x: scope["f"](x, 277), 1.5, gradient=277.5 + 3.0 - 1 / 278.0)
