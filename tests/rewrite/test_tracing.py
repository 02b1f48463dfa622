"""Tracers, profilers and debuggers see the user's lines and frames."""

import sys

import pytest
from plaingrad.rewrite import rewrite_function


def loops(n):
    total = 0
    for i in range(n):
        if i % 2:
            total += i
        else:
            total = (
                total
                + 1
            )
    while total > 2:
        total -= 2
    return total


def handlers(n):
    try:
        try:
            1 / n
        except ZeroDivisionError as e:
            raise KeyError from e
        finally:
            n += 1
    except KeyError:
        with open(__file__) as f:
            return f.closed
    return [i for i in range(n) if i]


def one_line(n): return n + 1


def generator(n):
    for i in range(n):
        x = yield i
        x = yield from (
            j for j in range(i)
        )
    return n


def matching(n):
    match [n, 1]:
        case [1, x]:
            return x
        case [0, y]:
            return -y


def whiles(n):
    while True:
        n += 1
        if n > 5:
            break
    return n


def run(f, n):
    out = f(n)
    return list(out) if f.__name__ == "generator" else out


def events(f, n):
    """The (event, line) of every frame of this file under `f(n)`, comprehensions included."""
    log = []

    def tracer(frame, event, arg):
        if frame.f_code.co_filename != __file__ or frame.f_code.co_name == "run":
            return None
        log.append((frame.f_code.co_name, event, frame.f_lineno))
        return tracer

    old = sys.gettrace()
    sys.settrace(tracer)
    try:
        run(f, n)
    finally:
        sys.settrace(old)
    return log


@pytest.mark.parametrize("form", ["fused", "expressions"])
@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("f", [loops, handlers, one_line, generator, matching, whiles], ids=lambda f: f.__name__)
def test_the_trace_is_that_of_the_original(f, n, form):
    assert events(rewrite_function(f, form), n) == events(f, n)


@pytest.mark.parametrize("f", [loops, handlers, generator], ids=lambda f: f.__name__)
def test_opcode_events_do_no_harm(f):
    def tracer(frame, event, arg):
        frame.f_trace_opcodes = True
        return tracer

    old = sys.gettrace()
    sys.settrace(tracer)
    try:
        got = run(rewrite_function(f), 3)
    finally:
        sys.settrace(old)
    assert got == run(f, 3)


def test_a_profiler_sees_the_function_between_its_call_and_return():
    log = []

    def profiler(frame, event, arg):
        if frame.f_code.co_filename == __file__ and event in ("call", "return"):
            log.append((frame.f_code.co_name, event))

    f = rewrite_function(loops)
    old = sys.getprofile()
    sys.setprofile(profiler)
    try:
        f(2)
    finally:
        sys.setprofile(old)
    assert log[:2] == [("loops", "call"), ("loops", "return")]


def test_monitoring_of_branches_and_lines_does_no_harm():
    if not hasattr(sys, "monitoring"):
        pytest.skip("came with 3.12")
    m, seen = sys.monitoring, set()
    m.use_tool_id(4, "test")
    try:
        for event in ("LINE", "BRANCH", "BRANCH_LEFT", "BRANCH_RIGHT", "JUMP", "PY_RESUME", "INSTRUCTION", "CALL"):
            if hasattr(m.events, event):
                bit = getattr(m.events, event)
                m.register_callback(4, bit, lambda code, *rest: seen.add(code.co_name))
                m.set_events(4, m.get_events(4) | bit)
        got = [run(rewrite_function(f), 3) for f in (loops, handlers, generator, matching, whiles)]
    finally:
        m.set_events(4, 0)
        m.free_tool_id(4)
    assert got == [run(f, 3) for f in (loops, handlers, generator, matching, whiles)]
    assert "loops" in seen
