"""Rewritten once, found by identity, forgotten with the original."""

import gc
import threading
import weakref

import pytest
from plaingrad.rewrite import cache, hooks, is_rewritten, rewrite_function, rewritten

FORMS = (hooks.FUSED, hooks.HOOKED, hooks.EXPRESSIONS)


def fresh(text="lambda x: x + 1"):
    return eval(text).__code__


def test_the_same_code_gives_the_same_code():
    code = fresh()
    assert rewritten(code) is rewritten(code)


def test_rewriting_again_changes_nothing():
    new = rewritten(fresh())
    assert rewritten(new) is new


def test_equal_codes_that_are_not_the_same_are_kept_apart():
    a, b = fresh(), fresh()
    assert a == b
    assert rewritten(a) is not rewritten(b)


def test_is_rewritten_knows_its_own():
    code = fresh()
    assert not is_rewritten(code)
    new = rewritten(code)
    assert is_rewritten(new)
    assert not is_rewritten(code)
    assert not is_rewritten(fresh())


def test_a_copy_of_rewritten_code_is_a_stranger():
    assert not is_rewritten(rewritten(fresh()).replace(co_name="other"))


def test_comprehensions_in_rewritten_code_are_rewritten_codes():
    new = rewritten(fresh("lambda xs: list(x for x in xs)"))
    inner = [c for c in new.co_consts if hasattr(c, "co_code")]
    assert [is_rewritten(c) for c in inner] == [True]


def test_the_original_of_rewritten_code():
    code = fresh()
    assert cache.original(rewritten(code)) is code
    assert cache.original(code) is code


def test_nothing_is_kept_of_codes_that_are_gone():
    code = fresh("lambda xs: [x for x in xs]")
    new = rewritten(code)
    old_ref, new_ref, count = weakref.ref(code), weakref.ref(new), len(cache._FORMS)
    del code, new
    gc.collect()
    assert old_ref() is None
    assert new_ref() is None
    assert len(cache._FORMS) < count


def test_rewritten_code_outlives_its_original():
    new = rewritten(fresh())
    gc.collect()
    assert is_rewritten(new)
    assert rewritten(new) is new
    assert cache.original(new) is None


def test_threads_agree():
    codes = [fresh(f"lambda x: x + {i}") for i in range(30)]
    found = [[] for _ in range(8)]
    gate = threading.Barrier(8)

    def work(mine):
        gate.wait()
        mine.extend(rewritten(code) for code in codes)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for mine in found[1:]:
        assert all(a is b for a, b in zip(mine, found[0], strict=True))


def test_a_rewritten_function_shares_what_the_original_has():
    y = 3

    def f(x: int, /, k=[1], *, z=2) -> float:  # noqa: B006
        """Doc."""
        return x + y + z

    f.note = "attribute"
    g = rewrite_function(f)
    assert g(1) == 6
    assert g.__closure__ is f.__closure__
    assert g.__globals__ is f.__globals__
    assert g.__defaults__ is f.__defaults__
    assert g.__kwdefaults__ is f.__kwdefaults__
    assert (g.__name__, g.__qualname__, g.__module__, g.__doc__) == (
        f.__name__,
        f.__qualname__,
        f.__module__,
        f.__doc__,
    )
    f.__kwdefaults__["z"] = 10
    y = 5
    f.other = 1
    assert g(1) == 16
    assert g.other == 1


def test_rewrite_function_of_a_rewritten_function():
    f = rewrite_function(lambda x: x + 1)
    assert rewrite_function(f).__code__ is f.__code__


def test_the_forms_of_a_code_are_kept_apart_and_belong_to_it():
    code = fresh("lambda a, b: a * b + b")
    fused, hooked, expressions = (rewritten(code, form) for form in FORMS)
    assert fused is rewritten(code)
    for made, form in zip((fused, hooked, expressions), FORMS, strict=True):
        assert made is rewritten(code, form)
        assert is_rewritten(made)
        assert cache.original(made) is code
        for other in FORMS:
            assert rewritten(made, other) is made
    assert len(expressions.co_code) < len(hooked.co_code) < len(fused.co_code)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_in_a_code_has_the_form_of_the_code(form):
    code = fresh("lambda xs: [x * x + x for x in xs]")
    inner = [c for c in rewritten(code, form).co_consts if hasattr(c, "co_code")]
    assert all(c is rewritten(cache.original(c), form) for c in inner)
