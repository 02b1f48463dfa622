"""Lists of arrays inside of programs: every one against the plain tier and differences, or refused.

Numba compiles the asserts below as they stand: PYTEST_DONT_REWRITE.
"""

import re
from collections import namedtuple

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, hvp, jacobian, jvp, value_and_grad, vjp
from plaingrad.native.compile import build
from plaingrad.native.border import call
from tests.native.programs.entries import entering
from tests.sampling import some
from tests.native.uncompiled import check

numba = pytest.importorskip("numba")

X = np.array([0.3, -0.8, 1.7])
M = np.array([[1.5, -0.4, 0.3], [0.2, 2.0, -0.7], [-0.5, 0.1, 1.1]])
PROGRAMS = {}
program = entering(PROGRAMS)


# -- lists that are filled, then read --------------------------------------------------------------------------------------


@program(X)
def states_appended_in_a_loop(x):
    states = [x]
    for k in range(4):
        states.append(np.sin(states[k]) * (k + 1.0))
    return np.sum(states[4] * states[2])


@program(X)
def an_empty_list_that_is_appended_to(x):
    out = []
    for k in range(3):
        out.append(x * x * k)
    return np.sum(out[2]) + out[1][0]


@program(X)
def a_list_written_out(x):
    both = [x * 2.0, x * x]
    return np.sum(both[0] * both[1])


@program(X)
def a_comprehension(x):
    return np.sum([np.exp(x * k) for k in range(3)][2])


@program(X, M)
def a_leapfrog_that_keeps_its_states(x, m):
    qs = [x]
    v = m @ x
    for _ in range(5):
        v = v - 0.1 * np.sin(qs[-1])
        qs.append(qs[-1] + 0.1 * v)
    total = 0.0
    for q in qs:
        total += np.sum(q * q)
    return total + v[0]


@program(X, M)
def a_network_that_sums_its_hidden_vectors_later(x, w):
    hs = []
    h = np.zeros(3)
    for t in range(4):
        h = np.tanh(w @ h + x * (t + 1))
        hs.append(h)
    total = 0.0
    for t in range(len(hs)):
        total += np.sum(hs[t]) * (t + 1.0)
    return total


@program(X, M)
def a_krylov_basis_made_orthogonal(b, a):
    basis = [b / np.sqrt(np.sum(b * b))]
    for k in range(2):
        w = a @ basis[k]
        for q in basis:
            w = w - np.sum(q * w) * q
        basis.append(w / np.sqrt(np.sum(w * w)))
    return np.sum(basis[2] * np.array([1.0, 2.0, 3.0])) + basis[1][0]


@program(X, M)
def products_with_a_list_of_matrices(x, m):
    matrices = [m, m @ m, m.T.copy()]
    found = [a @ x for a in matrices]
    return np.sum(found[0] * found[1]) + np.sum(found[2])


@program(M)
def a_list_of_matrices_multiplied_up(m):
    powers = [m]
    while len(powers) < 4:
        powers.append(powers[-1] @ m * 0.5)
    return np.trace(powers[3]) + powers[1][0, 1]


@program(X)
def a_list_read_from_the_end(x):
    hs = [x * k for k in range(1, 5)]
    total = 0.0
    for k in range(1, len(hs) + 1):
        total = total * x[0] + np.sum(hs[-k] ** 2)
    return total


@program(X)
def a_list_taken_in_reverse(x):
    hs = [np.cos(x * k) for k in range(1, 4)]
    y = x * 1.0
    for h in hs[::-1]:
        y = y * h + h[1]
    return np.sum(y)


@program(X)
def several_lists_at_once(x):
    a = [x * k for k in range(3)]
    b = [np.sin(x + k) for k in range(3)]
    total = 0.0
    for u, v in zip(a, b):
        total = total * x[1] + np.sum(u * v)
    return total


@program(X)
def a_list_unpacked(x):
    a, b = [x * x, np.sin(x)]
    return np.sum(a * b)


@program(X)
def a_list_that_nothing_reads(x):
    kept = []
    for k in range(3):
        kept.append(x * k)
    return np.sum(x * x) * len(kept)


@program(X)
def a_list_of_which_only_the_length_depends_on_data(x):
    kept = [x]
    while np.sum(kept[-1] ** 2) > 0.5:
        kept.append(kept[-1] * 0.7)
    return np.sum(kept[-1]) * len(kept)


@program(X)
def a_list_that_stays_empty_in_this_run(x):
    kept = []
    for k in range(3):
        if x[k] > 10.0:
            kept.append(x * x)
    total = x[0]
    for h in kept:
        total += np.sum(h)
    return total


# -- the other things that are done to lists -------------------------------------------------------------------------------


@program(X)
def a_stack_that_is_popped_empty(x):
    stack = [x, np.sin(x), x * x]
    total = 0.0
    while len(stack) > 0:
        top = stack.pop()
        total = total * 0.5 + np.sum(top * top)
    return total


@program(X)
def the_truth_of_a_list(x):
    stack = [x * x, x]
    total = 0.0
    while stack:
        total += stack.pop()[0] * (total + 1.0)
    return total


@program(X)
def a_queue_popped_at_the_front(x):
    queue = [x * k for k in range(1, 4)]
    first = queue.pop(0)
    queue.append(first * first)
    second = queue.pop(0)
    return np.sum(queue[-1] * second) + len(queue)


@program(X)
def a_tree_of_sums(x):
    todo = [x * k for k in range(1, 6)]
    while len(todo) > 1:
        a = todo.pop()
        b = todo.pop()
        todo.insert(0, a * np.sin(b))
    return np.sum(todo[0])


@program(X)
def elements_assigned(x):
    hs = [x, x * 2.0, x * 3.0]
    hs[1] = np.sin(hs[0]) * hs[2]
    hs[0] = hs[1] * hs[0]
    return np.sum(hs[0]) + np.sum(hs[1] * hs[2])


@program(X)
def elements_assigned_in_a_loop(x):
    hs = [x * 1.0 for _ in range(3)]
    for sweep in range(4):
        for k in range(3):
            hs[k] = np.tanh(hs[k] + hs[k - 1] * 0.3)
    return np.sum(hs[0] * hs[1] * hs[2])


@program(X)
def lists_put_together(x):
    a = [x, x * x]
    b = [np.sin(x)]
    c = a + b
    d = c * 2
    c.append(x)
    return np.sum(c[2] * c[3]) + np.sum(d[4]) * len(d)


@program(X)
def a_list_extended(x):
    a = [x]
    b = [np.sin(x), x * x]
    a.extend(b)
    a.extend(a[:1])
    return np.sum(a[1] * a[2] * a[3])


@program(X)
def a_list_lengthened_in_place_under_two_names(x):
    a = [x]
    b = a
    a += [x * x]
    return np.sum(b[1]) * len(b)


@program(X)
def a_list_lengthened_in_place_in_a_loop(x):
    a = [x]
    for k in range(3):
        a += [np.sin(a[-1])]
    return np.sum(a[3]) + a[1][2]


@program(X)
def slices_of_lists(x):
    hs = [x * k for k in range(6)]
    total = 0.0
    for h in hs[1:5:2]:
        total += np.sum(h * h)
    return total + np.sum(hs[-2:][0]) * len(hs[::2])


@program(X)
def copies_turned_around_and_cleared(x):
    a = [x, x * x, np.sin(x)]
    b = a.copy()
    c = list(a)
    b.reverse()
    a.clear()
    a.append(b[0] * c[1])
    return np.sum(a[0] * b[2]) + len(c)


@program(X, 1)
def lists_of_either_arm(x, n):
    if n > 0:
        hs = [x, x * x]
    else:
        hs = [np.sin(x)]
    if n > 1:
        hs.append(x)
    return np.sum(hs[-1]) * len(hs)


@program(X)
def lists_that_change_names(x):
    old = [x]
    for k in range(3):
        new = [h * (k + 1.0) for h in old]
        new.append(np.sin(old[-1]))
        old = new
    return np.sum(old[0] * old[1]) + np.sum(old[3])


@program(X)
def a_list_made_in_every_iteration(x):
    total = 0.0
    for k in range(3):
        parts = [x * k, x * x]
        parts.append(parts[0] * parts[1])
        total += np.sum(parts[2]) * total + np.sum(parts[0])
    return total


@program(X)
def a_list_of_numbers_beside_a_list_of_arrays(x):
    norms = []
    hs = [x]
    for k in range(3):
        norms.append(np.sum(hs[-1] ** 2))
        hs.append(hs[-1] / norms[-1])
    return np.sum(hs[2]) * norms[1] + norms[0]


@program(X)
def a_list_that_grows_while_it_is_iterated_over(x):
    queue = [x]
    total = 0.0
    for h in queue:
        total = total * 0.5 + np.sum(h * h)
        if len(queue) < 6:
            queue.append(np.sin(h))
            queue.append(h * x[1])
    return total * len(queue)


@program(X)
def a_list_that_shrinks_while_it_is_iterated_over(x):
    stack = [x * k for k in range(1, 7)]
    total = 0.0
    for k, h in enumerate(stack):
        total += np.sum(h * stack.pop()) * (k + 1.0)
        if total > 20.0:
            break
    else:
        total *= x[0]
    return total


@program(X)
def a_list_changed_under_another_name_while_it_is_iterated_over(x):
    total = 0.0
    for k in range(3):
        hs = [x * k]
        for h in hs:
            other = hs if x[0] > 0.0 else [x]
            if len(hs) < 5:
                other.append(h * 2)
            total += h[0] * total + h[1]
    return total


# -- one array, several names ----------------------------------------------------------------------------------------------


@program(X)
def one_array_appended_twice(x):
    y = x * x
    hs = [y]
    hs.append(y)
    y[1] = 5.0 * x[0]
    hs[0][0] += x[2]
    return np.sum(hs[0] * hs[1])


@program(X)
def an_array_written_after_it_was_appended(x):
    y = np.zeros(3)
    hs = [y, x]
    for k in range(3):
        y[k] = x[k] ** 2
    z = np.sum(hs[0])
    y[0] = 7.0 * x[1]
    return z + np.sum(hs[0] * hs[1])


@program(X)
def an_element_written_through_a_name(x):
    hs = [x * 1.0, x * 2.0]
    h = hs[1]
    h[0] = x[1] * x[2]
    h *= 3.0
    return np.sum(hs[1] * hs[0])


@program(X)
def elements_added_to_in_place(x):
    grads = [np.zeros(3) for _ in range(3)]
    for k in range(6):
        grads[k % 3][k // 2] += x[k // 2] * x[k % 3]
        grads[k % 2] += x * 0.5
    return np.sum(grads[0] * grads[1]) + np.sum(grads[2] ** 2)


@program(X)
def one_buffer_appended_in_every_iteration(x):
    buffer = np.zeros(3)
    hs = []
    for k in range(3):
        buffer[k] = x[k] * x[k]
        hs.append(buffer)
    return np.sum(hs[0]) * hs[2][1]


@program(X)
def a_buffer_copied_in_every_iteration(x):
    buffer = x * 1.0
    hs = []
    for k in range(3):
        buffer[k] = buffer[k - 1] * buffer[k]
        hs.append(buffer.copy())
    return np.sum(hs[0] * hs[1] * hs[2])


@program(X)
def what_was_read_before_a_write_keeps_its_slope(x):
    y = x * 1.0
    hs = [y]
    a = hs[0][0] * hs[0][1]
    b = hs[0] * hs[0]
    y[0] = 2.0 * x[2]
    y[1] = y[1] * y[0]
    return a * np.sum(hs[0]) + np.sum(b * y)


@program(X)
def the_argument_itself_is_written_through_a_list(x):
    hs = [x]
    hs[0][1] = x[0] * x[2]
    hs[0] *= 2.0
    return np.sum(x * x)


@program(M)
def rows_and_columns_in_lists(m):
    rows = [m[k] for k in range(3)]
    columns = [m[:, k] for k in range(3)]
    return np.sum(rows[0] * columns[1]) + columns[2][0] * rows[2][1]


@program(M + 2.0)
def rows_of_a_buffer_written_through_a_list(m):
    a = m * 1.0
    rows = [a[0], a[1]]
    rows.append(a[2])
    for k in range(1, 3):
        rows[k] -= rows[k - 1] * (rows[k][0] / rows[k - 1][k])
    rows[0][1] = a[2, 2] * a[1, 1]
    return np.sum(a * m)


@program(M)
def transposed_matrices_in_a_list(m):
    ms = [m.T]
    ms.append(np.asfortranarray(m * m))
    total = 0.0
    for k in range(2):
        total += np.sum(np.sin(ms[k])) * ms[k][0, 1]
    return total


@program(X)
def an_array_is_swapped_within_a_list(x):
    hs = [x * 1.0, x * x]
    for k in range(3):
        hs[0], hs[1] = hs[1], hs[0] * hs[1]
    return np.sum(hs[1])


# -- functions, branches, exceptions ---------------------------------------------------------------------------------------


def total_of(hs, c):
    total = 0.0
    for h in hs:
        total += np.sum(h * h) * c
    return total


def push(hs, h):
    hs.append(np.sin(h))


def made(x, n):
    return [x * k for k in range(n)]


@program(X)
def lists_given_to_functions_and_got_from_them(x):
    hs = made(x, 3)
    push(hs, hs[1])
    push(hs, x)
    return total_of(hs, x[0])


@program(X)
def a_list_in_a_tuple(x):
    pair = ([x, x * x], x[0])
    pair[0].append(np.sin(x))
    hs, c = pair
    return np.sum(hs[2] * hs[1]) * c


@program(X)
def a_search_that_ends_early(x):
    hs = [x * k for k in range(5)]
    found = 0.0
    for k, h in enumerate(hs):
        if np.sum(h * h) > 8.0:
            break
        found = np.sum(h) * k + found * x[0]
    return found


@program(X)
def appended_only_sometimes(x):
    hs = [x]
    for k in range(6):
        h = np.sin(hs[-1] * (k + 1.0))
        if h[0] > 0.0:
            hs.append(h)
        elif len(hs) > 1:
            hs.pop()
    return np.sum(hs[-1]) + len(hs)


@program(X)
def a_checked_list(x):
    hs = [x]
    if len(hs) > 3:
        raise ValueError("too many")
    for k in range(3):
        assert hs[k].size == 3
        hs.append(hs[k] * x)
    return np.sum(hs[3])


@program(X, np.array([2, 0, 1]))
def a_list_read_in_any_order(x, order):
    hs = [np.exp(x), x * x, np.cos(x)]
    y = x * 1.0
    for k in order:
        y = y * hs[k] + hs[order[k]][0]
    return np.sum(y)


@program(X, 0.5)
def numbers_and_arrays_through_a_list(x, c):
    hs = [x * c]
    for k in range(3):
        c = c * hs[k][0] + np.sum(hs[k])
        hs.append(hs[k] + c * x)
    return c * np.sum(hs[3])


@program(np.array([0.3 + 0.2j, -0.8j, 1.7]))
def complex_arrays_in_a_list(z):
    hs = [z]
    for k in range(3):
        hs.append(hs[k] * z + 1j)
    return np.sum(np.abs(hs[3]) ** 2) + hs[1][0].imag


# -- lists of tuples -------------------------------------------------------------------------------------------------------


@program(X)
def a_trajectory_of_pairs(x):
    path = [(x, np.cos(x))]
    for _ in range(4):
        q, p = path[-1]
        p = p - 0.1 * np.sin(q)
        path.append((q + 0.1 * p, p))
    total = 0.0
    for q, p in path:
        total = total * 0.9 + np.sum(q * p)
    return total + path[1][0][2]


@program(X, 0.4)
def a_history_of_times_and_states(x, dt):
    t = 0.0
    h = x * 1.0
    steps = 0
    history = []
    while t < 1.0:
        t += dt
        h = h + dt * np.sin(h * t)
        history.append((t, h, steps))
        steps += 1
    total = 0.0
    for k in range(len(history)):
        when, state, n = history[k]
        total += np.sum(state) * when * (n + 1)
    return total


@program(X)
def a_stack_of_things_to_do(x):
    todo = [(x, 1.0, 0)]
    total = 0.0
    while todo:
        h, c, depth = todo.pop()
        total += np.sum(h * h) * c
        if depth < 2:
            todo.append((np.sin(h), c * h[0], depth + 1))
            todo.insert(0, (h * h, c * 0.5, depth + 1))
    return total


@program(X)
def pairs_assigned_joined_and_copied(x):
    a = [(x[0], x[1]), (x[2], 1.0)]
    b = a.copy()
    a[0] = (x[1] * x[2], x[0])
    c = a + b[:1]
    c.extend(b)
    c += [(x[0], x[0])]
    c.reverse()
    total = 0.0
    for u, v in c[::2]:
        total = total * u + v
    return total * len(c) + a[-1][0]


@program(X)
def tuples_in_tuples_in_a_list(x):
    hs = [((x, 2.0), x[0])]
    for k in range(3):
        (h, c), d = hs[k]
        hs.append(((np.sin(h) * c, c * d), d + h[1]))
    (h, c), d = hs[-1]
    return np.sum(h) * c + d


@program(X)
def an_array_of_a_tuple_written_into(x):
    hs = [(np.zeros(3), 0)]
    hs.append((np.zeros(3), 1))
    hs.append((np.zeros(3), 2))
    for k in range(5):
        h, n = hs[k % 3]
        h[n] += x[k % 3] * x[n]
        hs[k % 2][0][1] *= x[0]
    return np.sum(hs[0][0] * hs[1][0]) + hs[2][0][2]


State = namedtuple("State", "q t")


@program(X)
def named_tuples_in_a_list(x):
    states = [State(x, 0.5)]
    for k in range(3):
        s = states[-1]
        states.append(State(np.sin(s.q) * s.t, s.t + s.q[0]))
    return np.sum(states[3].q) * states[2].t


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_with_lists_of_arrays(name):
    f, args = PROGRAMS[name]
    check(f, *args)


# -- compiled --------------------------------------------------------------------------------------------------------------

COMPILED = some(
    [
        "a_leapfrog_that_keeps_its_states",
        "a_stack_that_is_popped_empty",
        "an_array_written_after_it_was_appended",
    ],
    ["elements_added_to_in_place", "a_krylov_basis_made_orthogonal", "transposed_matrices_in_a_list"],
)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_the_value_is_that_of_the_users_function_to_the_bit(name):
    f, args = PROGRAMS[name]
    at = tuple(range(len(args)))
    y, bars = value_and_grad(f, at, tier="native")(*[x.copy() for x in args])
    assert np.float64(y).tobytes() == np.float64(numba.njit(f)(*[x.copy() for x in args])).tobytes()
    expected = grad(f, at, tier="plain")(*[x.copy() for x in args])
    for bar, other in zip(bars, expected, strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-12, atol=1e-13)


def test_a_queue_is_popped_at_its_front_without_harm_to_memory():
    """Numba frees the arrays of `xs.pop(0)` too early; the derived program must not."""
    f, (x,) = PROGRAMS["a_queue_popped_at_the_front"]
    g = grad(f, tier="native")
    expected = grad(f, tier="plain")(x)
    for _ in range(300):
        np.testing.assert_allclose(g(x), expected, rtol=1e-12)


def test_a_pullback_may_be_called_again(in_python):
    f, (x,) = PROGRAMS["elements_added_to_in_place"]
    _, pull = vjp(f, x.copy(), tier="native")
    first, second = pull(1.0), pull(1.0)
    np.testing.assert_allclose(np.ravel(first), np.ravel(second), rtol=1e-14)
    np.testing.assert_allclose(np.ravel(pull(2.0)), 2.0 * np.ravel(first), rtol=1e-14)


def several_results(x):
    hs = [x]
    for k in range(3):
        hs.append(np.sin(hs[k]) * hs[0])
    hs[1][0] = x[1]
    return hs[-1], hs[1], np.sum(hs[2])


def test_arrays_of_a_list_may_be_returned(in_python):
    y, y_dot = jvp(several_results, (X,), (np.array([1.0, 2.0, -1.0]),), tier="native")
    expected, expected_dot = jvp(several_results, (X,), (np.array([1.0, 2.0, -1.0]),), tier="plain")
    for a, b in zip((*y, *y_dot), (*expected, *expected_dot), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    seeds = (np.array([1.0, 0.5, 2.0]), np.array([0.3, 1.0, 0.0]), 2.0)
    _, mine = vjp(several_results, X, tier="native")
    _, theirs = vjp(several_results, X, tier="plain")
    np.testing.assert_allclose(np.ravel(mine(seeds)), np.ravel(theirs(seeds)), rtol=1e-12)


def test_a_jacobian_takes_many_directions_through_a_list_at_once():
    found = jacobian(several_results, tier="native")(X)
    expected = jacobian(several_results, tier="plain")(X)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "name", ["states_appended_in_a_loop", "elements_added_to_in_place", "a_tree_of_sums"]
)
def test_second_derivatives_push_forward_the_lists_of_shadows(name):
    f, (x,) = PROGRAMS[name]
    v = np.array([0.7, -0.2, 1.1])
    found = hvp(f, (x,), (v,), tier="native")
    h = 1e-5
    g = grad(f, tier="plain")
    slopes = (g(x + h * v) - g(x - h * v)) / (2 * h)
    np.testing.assert_allclose(np.ravel(found), slopes, rtol=1e-7, atol=1e-8)


# -- errors, and what is refused -------------------------------------------------------------------------------------------


def beyond(x):
    return np.sum([x][1])


def popped_from_nothing(x):
    hs = [x]
    hs.pop()
    return np.sum(hs.pop())


def popped_beyond(x):
    hs = [x]
    return np.sum(hs.pop(1))


@pytest.mark.parametrize("f", [beyond, popped_from_nothing, popped_beyond], ids=lambda f: f.__name__)
def test_an_index_out_of_range_raises_as_it_does_in_the_program(f, in_python):
    with pytest.raises(IndexError):
        grad(f, tier="native")(X)


CONSTANT = np.array([1.0, 5.0, 2.0])


@numba.njit
def recursive(hs, n):
    if n == 0:
        return np.sum(hs[0])
    hs.append(hs[-1] * 2.0)
    return recursive(hs, n - 1) + np.sum(hs[-1])


def given_to_a_function_that_calls_itself(x):
    return recursive([x], 3)


def a_list_that_is_returned(x):
    return [x, x * x]


def a_list_of_lists(x):
    hs = [[x]]
    hs.append([x * 2])
    return np.sum(hs[1][0])


def a_constant_in_a_list(x):
    hs = [CONSTANT]
    hs.append(x)
    return np.sum(hs[0] * hs[1])


def a_list_extended_by_the_rows_of_an_array(x):
    hs = [x]
    hs.extend(np.outer(x, x))
    return np.sum(hs[2])


def a_slice_assigned(x):
    hs = [x, x * x, x]
    hs[1:] = [x * 3]
    return np.sum(hs[1])


def changed_while_iterated_over_with_another(x):
    hs = [x]
    total = 0.0
    for h, c in zip(hs, x):
        if len(hs) < 3:
            hs.append(h * x[1])
        total += h[0] * c
    return total


def a_list_of_numbas_own(x):
    hs = numba.typed.List()
    hs.append(x)
    return np.sum(hs[0])


def a_list_repeated_in_place(x):
    hs = [x]
    hs *= 2
    return np.sum(hs[1])


REFUSED = (
    given_to_a_function_that_calls_itself,
    a_list_that_is_returned,
    a_list_of_lists,
    a_constant_in_a_list,
    a_list_extended_by_the_rows_of_an_array,
    a_slice_assigned,
    changed_while_iterated_over_with_another,
    a_list_of_numbas_own,
    a_list_repeated_in_place,
)


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("mode", ["pullback", "pushforward"])
def test_what_lists_of_arrays_do_not_do_natively_is_refused_with_the_line(mode, f):
    first = f.__code__.co_firstlineno
    with pytest.raises(plaingrad.NativeError, match=r"test_array_lists.py:\d+") as refused:
        build.derived(mode, f, call.signature_of((X,)), (0,))
    lines = {int(n) for n in re.findall(r"test_array_lists.py:(\d+)", str(refused.value))}
    assert lines & set(range(first, first + 9)), str(refused.value)
    assert "To go on:" in str(refused.value)


def test_a_list_of_numbas_own_is_told_to_be_a_plain_one():
    with pytest.raises(plaingrad.NativeError, match=r"use a plain list, \[\]"):
        build.derived("pullback", a_list_of_numbas_own, call.signature_of((X,)), (0,))
