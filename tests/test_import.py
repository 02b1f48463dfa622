"""What `import plaingrad` gives, and what it leaves alone until somebody needs it."""

import subprocess
import sys

import plaingrad
from plaingrad.api.other_names import MODULES


def answer(program):
    """What a program prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_only_public_names_are_listed():
    names = [name for name in dir(plaingrad) if not name.startswith("__")]
    assert names == sorted([*plaingrad.__all__, *MODULES])
    assert "__version__" in dir(plaingrad)


def test_testing_is_an_attribute():
    assert answer("import plaingrad; print(plaingrad.testing.check_rule.__name__)") == "check_rule"


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(plaingrad, "gradient")


def test_what_most_programs_do_not_need_is_not_imported():
    heavy = ("asyncio", "numba", "scipy", "mpmath", "plaingrad.testing", "plaingrad.native")
    heavy += ("plaingrad.engine.batches.level", "plaingrad.api.batched_gradients")
    heavy += ("numpy.ma", "numpy.random")  # which older versions of NumPy import themselves
    heavy += ("plaingrad.rewrite.transform", "plaingrad.rewrite.listing", "multiprocessing.connection", "html")
    program = "import sys, numpy; before = {*sys.modules}; import plaingrad"
    assert answer(f"{program}; print([name for name in {heavy} if name in sys.modules and name not in before])") == "[]"


def test_rules_of_random_numbers_and_masked_arrays_are_in_force_as_soon_as_a_program_asks_numpy_for_them():
    program = """
import numpy as np, plaingrad

def drawn(x):
    return np.random.default_rng(3).normal(x, 2.0 * x)

def masked(x):
    return np.ma.log(np.ma.array([x, -1.0], mask=[False, True])).sum()

before = np.random.default_rng(3).normal()
print(plaingrad.grad(drawn)(1.5) == 1.0 + 2.0 * before, plaingrad.grad(masked)(4.0))
"""
    assert answer(program) == "True 0.25"


def test_rules_of_asyncio_are_in_force_as_soon_as_a_program_imports_it():
    program = """
import plaingrad

def f(x):
    import asyncio

    async def square(x):
        await asyncio.sleep(0)
        return x * x

    async def main(x):
        future = asyncio.get_running_loop().create_future()
        future.set_result(x * 2.0)
        return sum(await asyncio.gather(square(x), square(x * 3.0))) + await future

    return asyncio.run(main(x))

print(plaingrad.grad(f)(1.5), len(list(plaingrad.rules())) > 1000)
"""
    assert answer(program) == "32.0 True"
