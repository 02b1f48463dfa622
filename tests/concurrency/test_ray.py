"""Tasks for Ray inside a differentiated function, and losses over Ray; skipped where Ray is not installed."""

import asyncio
import os

import numpy as np
import pytest

import plaingrad
from plaingrad import distributed

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Two workers on this machine; where it is too busy for Ray to start, the tests are skipped."""
    try:
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    except Exception as error:
        pytest.skip(f"Ray does not start here: {error}")
    yield
    ray.shutdown()


def test_tasks_and_references():
    squared, summed = ray.remote(lambda x: x * x), ray.remote(lambda a, b=1.0: {"s": np.sum(a) * b})
    programs = [
        (lambda x: ray.get(squared.remote(x)) * x, lambda x: x**3),
        (lambda x: sum(ray.get([squared.remote(x), squared.remote(2.0 * x)])), lambda x: 5.0 * x * x),
        (lambda x: ray.get(ray.remote(lambda: x * x).remote()), lambda x: x * x),
        (lambda x: ray.get(summed.remote(squared.remote(x), b=ray.put(x)))["s"], lambda x: x**3),
        (lambda x: ray.get(ray.wait([squared.remote(x)])[0][0]), lambda x: x * x),
    ]
    for n, (f, plain) in enumerate(programs):
        assert plaingrad.value_and_grad(f)(0.5) == plaingrad.value_and_grad(plain)(0.5), n
    assert plaingrad.jvp(programs[0][0], (0.5,), (1.0,))[1] == 0.75
    assert plaingrad.grad(plaingrad.grad(programs[0][0]))(0.5) == pytest.approx(3.0)


def test_a_worker_that_is_lost_on_the_way_back(tmp_path):
    marker = str(tmp_path / "begun")

    def lost(x, marker):
        if not os.path.exists(marker):
            open(marker, "w").close()
        elif not os.path.exists(marker + "2"):
            open(marker + "2", "w").close()
            os._exit(1)
        return x**3

    task = ray.remote(lost)
    assert plaingrad.grad(lambda x: ray.get(task.remote(x, marker)))(2.0) == 12.0
    assert os.path.exists(marker + "2")


def test_actors_and_hidden_references_are_refused():
    class Sum:
        def __init__(self, x):
            self.x = x

        def add(self, y):
            self.x += y
            return self.x

    actor, squared = ray.remote(Sum), ray.remote(lambda x: x * x)
    for f in (
        lambda x: ray.get(actor.remote(x).add.remote(1.0)),
        lambda x: ray.get(actor.remote(1.0).add.remote(x)),
        lambda x: ray.get(ray.remote(lambda held: ray.get(held[0])).remote([squared.remote(x)])),
    ):
        with pytest.raises(plaingrad.RoundTripError):
            plaingrad.grad(f)(3.0)


def test_results_that_would_be_constants_are_refused():
    squared = ray.remote(lambda x: x * x)

    @ray.remote
    def several(x):
        yield x
        yield x * x

    @ray.remote
    def fails(x):
        raise ValueError(x * x)

    def caught(x):
        try:
            return ray.get([fails.remote(x)])
        except ValueError as error:
            return error.cause.args[0]

    async def awaited(x):
        return await squared.remote(x)

    for f in (
        lambda x: sum(ray.get(list(several.remote(x)))),
        caught,
        lambda x: squared.remote(x).future().result(),
        lambda x: asyncio.run(awaited(x)),
    ):
        with pytest.raises(plaingrad.PlaingradError):
            plaingrad.grad(f)(3.0)


def test_a_loss_over_partitions():
    found = distributed.value_and_grad(lambda x, part: x * x * part, ray, reduce="mean")(3.0, [1.0, 2.0])
    assert found == (13.5, 9.0)
