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
    heavy += ("plaingrad.rewrite.transform", "plaingrad.rewrite.listing", "multiprocessing.connection", "html")
    assert answer(f"import sys, plaingrad; print([name for name in {heavy} if name in sys.modules])") == "[]"


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
