"""The whole programs of the benchmarks: derivatives of ordinary Python in a dozen styles, beside differences."""

import pytest

check = pytest.importorskip("benchmarks.ordinary.check")  # not part of a source distribution
operations = pytest.importorskip("benchmarks.ordinary.operations")
wholes = pytest.importorskip("benchmarks.ordinary.wholes")
Program = pytest.importorskip("benchmarks.ordinary.program").Program


@pytest.mark.parametrize("program", wholes.wholes(), ids=lambda p: p.name.partition(":")[0].replace(" ", "-"))
def test_derivatives_of_whole_programs_agree_with_differences(program):
    check.check(program)


@pytest.mark.parametrize("name", operations.OPERATIONS)
def test_derivatives_of_single_operations_agree_with_differences(name):
    f = operations.function(operations.OPERATIONS[name], rounds=3)
    check.check(Program(name, f, 0.7, None))


def test_the_colour_difference_is_that_of_the_paper():
    from benchmarks.ordinary.whole.colour_difference import ciede2000

    # Sharma, Wu, Dalal 2005, table 1, pairs 1, 4, 9 and 17
    pairs = [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0000),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0009), 7.1792),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
    ]
    for first, second, difference in pairs:
        assert ciede2000(first, second) == pytest.approx(difference, abs=1e-4)
