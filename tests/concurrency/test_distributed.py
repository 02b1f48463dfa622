"""Data-parallel losses over the engines that are installed, against the gradient of the sum in this process."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import sys
import types

import distributed_losses
import numpy as np
import pytest
from distributed_losses import (
    drawn,
    ending,
    ending_once,
    failing,
    from_file,
    logistic,
    lost_a_second_time,
    slow,
    square,
    weighted,
)

import plaingrad
from plaingrad import distributed

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

WEIGHTS = {"slope": np.array([0.2, -0.4, 0.1]), "offset": 0.3}


@pytest.fixture
def parts():
    """Rows and labels, in three parts of different sizes."""
    drawn = np.random.default_rng(3)
    return [(drawn.normal(size=(n, 3)), np.sign(drawn.normal(size=n))) for n in (2, 5, 3)]


@pytest.fixture(scope="module")
def pool():
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as made:
        yield made


@pytest.fixture(scope="module")
def client():
    """Two workers of Dask in processes of their own."""
    dask_distributed = pytest.importorskip("distributed")
    with (
        dask_distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        dask_distributed.Client(cluster) as made,
    ):
        yield made


def agrees(found, f, x, parts):
    """Value and gradient are those of the sum here."""
    value, slope = plaingrad.value_and_grad(lambda x: sum(f(x, part) for part in parts))(x)
    assert found[0] == pytest.approx(value, rel=1e-14)
    for name in x:
        np.testing.assert_allclose(found[1][name], slope[name], rtol=1e-12)


def test_over_an_executor(pool, parts, tmp_path):
    seen = []
    total = distributed.value_and_grad(
        logistic, pool, progress=lambda done, count: seen.append((done, count))
    )
    found = total(WEIGHTS, parts)
    agrees(found, logistic, WEIGHTS, parts)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    again = total(WEIGHTS, parts)
    assert again[0] == found[0] and again[1]["offset"] == found[1]["offset"]
    mean = distributed.value_and_grad(logistic, pool, reduce="mean")(WEIGHTS, parts)
    np.testing.assert_allclose(mean[1]["slope"], found[1]["slope"] / 3.0, rtol=1e-13)
    files = []
    for n, (rows, labels) in enumerate(parts):
        files.append(tmp_path / f"{n}.npz")
        np.savez(files[-1], rows=rows, labels=labels)
    agrees(distributed.value_and_grad(from_file, pool)(WEIGHTS, files), logistic, WEIGHTS, parts)


def test_over_pools_of_multiprocessing(parts):
    with multiprocessing.get_context("fork").Pool(1) as made:
        agrees(distributed.value_and_grad(logistic, made)(WEIGHTS, parts), logistic, WEIGHTS, parts)


def test_errors_name_the_partition(pool):
    with pytest.raises(ValueError, match="bad part") as failed:
        distributed.value_and_grad(failing, pool)(2.0, [0, 1, 2])
    notes = " ".join(failed.value.__notes__)
    assert "partition 1 of 3" in notes and "in process" in notes
    with pytest.raises(plaingrad.ArgumentError, match="'median'"):
        distributed.value_and_grad(failing, pool, reduce="median")
    with pytest.raises(plaingrad.ArgumentError, match="list"):
        distributed.value_and_grad(failing, [])


def test_a_process_that_ends_is_an_error_with_the_partition():
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as made:
        with pytest.raises(concurrent.futures.process.BrokenProcessPool) as broken:
            distributed.value_and_grad(ending, made)(2.0, [0, 1])
    assert "for partition" in " ".join(broken.value.__notes__)


def test_ranks_of_a_communicator():
    """A communicator of one rank; `mpi_programs` has several."""
    alone = types.SimpleNamespace(Get_rank=lambda: 0, allreduce=lambda x, op=None: x, allgather=lambda x: [x])
    assert distributed.value_and_grad(lambda x, part: x * x * part, alone)(3.0, [1.0, 2.0]) == (27.0, 18.0)
    with pytest.raises(ValueError, match="bad part") as failed:
        distributed.value_and_grad(failing, alone)(2.0, [0, 1])
    assert "on rank 0" in " ".join(failed.value.__notes__)


@pytest.mark.slow
def test_over_dask(client, parts, tmp_path):
    dask, arrays = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    client.run(sys.path.append, os.path.dirname(distributed_losses.__file__))
    agrees(distributed.value_and_grad(logistic, client)(WEIGHTS, parts), logistic, WEIGHTS, parts)
    lazy = [dask.delayed(part) for part in parts]
    agrees(distributed.value_and_grad(logistic, client)(WEIGHTS, lazy), logistic, WEIGHTS, parts)
    rows = np.concatenate([rows for rows, _ in parts])
    labels = np.concatenate([labels for _, labels in parts])
    chunked = arrays.from_array(rows, chunks=(4, 2)), arrays.from_array(labels, chunks=4)
    agrees(distributed.value_and_grad(logistic, client)(WEIGHTS, chunked), logistic, WEIGHTS, parts)
    # a worker that is lost costs its parts once more
    marked = [(number, str(tmp_path / "ended")) for number in range(4)]
    assert distributed.value_and_grad(ending_once, client)(3.0, marked) == (54.0, 36.0)
    assert (tmp_path / "ended").exists()
    with pytest.raises(ValueError, match="bad part") as failed:
        distributed.value_and_grad(failing, client)(2.0, [0, 1, 2])
    assert "partition 1 of 3" in " ".join(failed.value.__notes__)
    with pytest.raises(TimeoutError) as late:
        distributed.value_and_grad(slow, client, timeout=1.0)(2.0, [0, 1])
    assert "partition 1 of 2, on worker tcp://" in " ".join(late.value.__notes__)


@pytest.mark.slow
def test_tasks_for_a_client_inside_a_differentiated_function(client, tmp_path):
    client.run(sys.path.append, os.path.dirname(distributed_losses.__file__))
    dask_distributed = pytest.importorskip("distributed")
    programs = [
        (lambda x: client.submit(square, x).result() * x, lambda x: x**3),
        (lambda x: client.submit(lambda: x * x).result(), lambda x: x * x),
        (lambda x: sum(client.gather(client.map(square, [x, 2.0 * x]))), lambda x: 5.0 * x * x),
        (
            lambda x: client.submit(weighted, client.submit(square, x), b=client.scatter(x)).result()["s"],
            lambda x: x**3,
        ),
        (
            lambda x: sum(f.result() for f in dask_distributed.as_completed(client.map(square, [x, x]))),
            lambda x: 2 * x * x,
        ),
        (
            lambda x: client.submit(square, x).result() + 2.0 * client.submit(square, x * 1.0).result(),
            lambda x: 3 * x * x,
        ),
        (lambda x: x * client.submit(abs, -2.0).result(), lambda x: 2.0 * x),
    ]
    for n, (f, plain) in enumerate(programs):
        assert plaingrad.value_and_grad(f)(0.5) == pytest.approx(
            plaingrad.value_and_grad(plain)(0.5), rel=1e-14
        ), n
        assert plaingrad.jvp(f, (0.5,), (1.0,))[1] == pytest.approx(plaingrad.grad(plain)(0.5), rel=1e-14), n
    assert plaingrad.grad(plaingrad.grad(programs[0][0]))(0.5) == pytest.approx(3.0)
    a = np.array([1.0, 2.0])
    found = plaingrad.grad(lambda a: client.submit(weighted, client.scatter(a), b=2.0).result()["s"])(a)
    np.testing.assert_array_equal(found, [2.0, 2.0])
    # a worker that is lost on the way back costs its tasks once more
    marker = str(tmp_path / "begun")
    assert plaingrad.grad(lambda x: client.submit(lost_a_second_time, x, marker).result())(2.0) == 12.0
    assert os.path.exists(marker + "2")
    with pytest.raises(plaingrad.CheckpointError, match="run again"):
        plaingrad.grad(lambda x: client.submit(drawn, x, pure=False).result())(2.0)


def test_results_of_a_client_arrive_in_other_ways(client):
    client.run(sys.path.append, os.path.dirname(distributed_losses.__file__))
    as_completed = pytest.importorskip("distributed").as_completed

    def begun(x):
        return [client.submit(square, x * k, pure=False) for k in (1.0, 2.0)]

    def caught(f):
        with pytest.raises(ValueError) as error:
            f.result()
        return error.value.args[0] + f.exception().args[0]

    programs = [
        lambda x: sum(value for _, value in as_completed(begun(x), with_results=True)),
        lambda x: sum(v for some in as_completed(begun(x), with_results=True).batches() for _, v in some),
        lambda x: sum(client.gather(client.submit(square, x * k, pure=False) for k in (1.0, 2.0))),
        lambda x: client.get_executor(pure=False).submit(square, x * 5.0**0.5).result(),
        lambda x: sum(client.get_executor(pure=False).map(square, [x, 2.0 * x])),
        lambda x: 2.5 * caught(client.submit(distributed_losses.raising, x, pure=False)),
        # equal numbers of which one is a constant: two futures with one name
        lambda x: (
            2.5 * client.submit(square, x).result() + 2.5 * x * x * client.submit(square, 0.5).result() * 4.0
        ),
    ]
    for n, f in enumerate(programs):
        assert plaingrad.value_and_grad(f)(0.5) == pytest.approx((1.25, 5.0), rel=1e-14), n
        assert plaingrad.derivative(f)(0.5) == pytest.approx(5.0, rel=1e-14), n


def test_what_a_cluster_keeps_by_name_and_what_has_a_state_is_refused(client):
    client.run(sys.path.append, os.path.dirname(distributed_losses.__file__))
    dask_distributed = pytest.importorskip("distributed")
    joblib = pytest.importorskip("joblib")

    def task(x):
        return client.submit(square, x, pure=False)

    def by_joblib(x):
        with joblib.parallel_config("dask", client=client):
            return sum(joblib.Parallel()(joblib.delayed(square)(x * k) for k in (1.0, 2.0)))

    def by_actor(x):
        actor = client.submit(distributed_losses.Total, actor=True).result()
        return actor.add(x).result()

    def by_variable(x, value):
        variable = dask_distributed.Variable("variable", client=client)
        variable.set(value)
        return x

    programs = [
        lambda x: by_variable(x, task(x)),
        lambda x: by_variable(x, x * x),
        lambda x: dask_distributed.Queue("queue", client=client).put(task(x)),
        lambda x: client.publish_dataset(task(x), name="data"),
        lambda x: dask_distributed.Future((begun := task(x)).key, client).result() + begun.result(),
        by_actor,
        lambda x: sum(client.run(square, x).values()),
        lambda x: client.run_on_scheduler(square, x),
    ]
    with contextlib.suppress(plaingrad.RoundTripError):  # with one worker, joblib calls the functions here
        assert plaingrad.grad(by_joblib)(0.5) == pytest.approx(5.0)
    for n, f in enumerate(programs):
        for derivative in (plaingrad.grad, plaingrad.derivative):
            with pytest.raises(plaingrad.RoundTripError):
                print(n, derivative(f)(0.5))


def lazy_programs():
    """Programs with arrays of Dask, and the same with NumPy."""
    da = pytest.importorskip("dask.array")
    a = np.linspace(0.1, 1.0, 12).reshape(4, 3)

    def lazy(x):
        return da.from_array(a, chunks=(2, 3)) * x

    return [
        (lambda x: (da.from_array(a * x, chunks=2) ** 2).sum(), lambda x: np.sum((a * x) ** 2)),
        (lambda x: da.sin(lazy(x)).mean(), lambda x: np.mean(np.sin(a * x))),
        (lambda x: (lazy(x).T @ lazy(x * x)).sum(), lambda x: np.sum((a * x).T @ (a * x * x))),
        (lambda x: (lazy(x)[1:3, ::2] * x).sum(), lambda x: np.sum(a[1:3, ::2] * x * x)),
        (
            lambda x: da.from_array(a, chunks=2).map_blocks(lambda m: np.exp(m * x)).sum(),
            lambda x: np.sum(np.exp(a * x)),
        ),
        (lambda x: (lazy(x) ** 3).max() * lazy(x).std(), lambda x: np.max((a * x) ** 3) * np.std(a * x)),
        (
            lambda x: (
                lazy(x)[:, 0].map_overlap(lambda v: v - np.roll(v, 1), depth=1, boundary="periodic") ** 2
            ).sum(),
            lambda x: np.sum((a[:, 0] * x - np.roll(a[:, 0] * x, 1)) ** 2),
        ),
        (
            lambda x: da.where(lazy(x) > 0.3, lazy(x) ** 2, -x).sum(),
            lambda x: np.sum(np.where(a * x > 0.3, (a * x) ** 2, -x)),
        ),
        (  # equal numbers, of which only some depend on x, are not one task
            lambda x: (da.from_array(a * (x / 0.5), chunks=2) * da.from_array(a * 1.0, chunks=2)).sum(),
            lambda x: np.sum(a * (x / 0.5) * a),
        ),
    ]


@pytest.mark.parametrize("number", range(9))
def test_lazy_arrays(number):
    lazy, plain = lazy_programs()[number]

    def f(x):
        return lazy(x).compute(scheduler="sync")[()]

    x = 0.5
    assert f(x) == pytest.approx(plain(x), rel=1e-14)
    slope, second = plaingrad.grad(plain)(x), plaingrad.derivative(plaingrad.grad(plain))(x)
    assert plaingrad.grad(f)(x) == pytest.approx(slope, rel=1e-12)
    assert plaingrad.derivative(f)(x) == pytest.approx(slope, rel=1e-12)
    assert plaingrad.grad(lambda x: lazy(x).compute(scheduler="threads")[()])(x) == pytest.approx(
        slope, rel=1e-12
    )
    if number < 5:
        assert plaingrad.derivative(plaingrad.grad(f))(x) == pytest.approx(second, rel=1e-11, abs=1e-12)


def test_each_block_of_a_lazy_array_is_computed_once():
    da = pytest.importorskip("dask.array")
    seen = []

    def doubled(block, x):
        seen.append(block.shape)
        return block * x

    def f(x):
        b = da.ones((4, 3), chunks=(2, 3)).map_blocks(doubled, x, dtype=float, meta=np.empty((0, 0)))
        return (b * b).sum().compute(scheduler="sync")[()]

    assert plaingrad.grad(f)(2.0) == 48.0
    assert len(seen) == 2


def test_lazy_arrays_that_are_stored_into_arrays():
    da = pytest.importorskip("dask.array")
    a = np.arange(1.0, 7.0).reshape(2, 3)

    def f(x):
        lazy = da.from_array(a, chunks=(1, 2)) * x
        out, wide, one = np.ones((2, 3)), np.full((4, 5), x), np.zeros(())
        lazy.store(out, scheduler="sync")
        da.store([lazy, lazy.T], [wide, wide], regions=[(slice(1, 3), slice(0, 3)), (slice(1, 4), slice(3, 5))], scheduler="threads")
        lazy.sum().store(one, scheduler="sync")
        return (out * wide[1:3, 1:4]).sum() + wide.sum() * one

    def plain(x):
        out, wide = a * x, np.ones((4, 5)) * x
        wide[1:3, :3] = out
        wide[1:4, 3:] = out.T
        return (out * wide[1:3, 1:4]).sum() + wide.sum() * out.sum()

    expected = plaingrad.grad(plain)(0.5)
    assert f(0.5) == pytest.approx(plain(0.5), rel=1e-14)
    assert plaingrad.grad(f)(0.5) == pytest.approx(expected, rel=1e-13)
    assert plaingrad.derivative(f)(0.5) == pytest.approx(expected, rel=1e-13)

    def overwritten(x):
        out = np.full(3, x)
        da.ones(3, chunks=2).store(out, scheduler="sync")
        return out.sum() * x

    assert plaingrad.grad(overwritten)(2.0) == 3.0
    for options in ({"compute": False}, {"return_stored": True}):
        with pytest.raises(plaingrad.MissingRuleError, match="store"):
            plaingrad.grad(lambda x: (da.ones(3, chunks=2) * x).store(np.zeros(3), **options))(2.0)  # noqa: B023
    with pytest.raises(plaingrad.MissingRuleError, match="store"):
        plaingrad.grad(lambda x: (da.ones(3, chunks=2) * x).store([0.0, 0.0, 0.0]))(2.0)


@pytest.mark.slow
def test_graphs_with_differentiated_values(client):
    client.run(sys.path.append, os.path.dirname(distributed_losses.__file__))
    dask, bag = pytest.importorskip("dask"), pytest.importorskip("dask.bag")
    one = dask.delayed
    programs = [
        (
            lambda x: one(sum)([one(square)(x), one(weighted)(a=x, b=one(square)(x))["s"], 3.0]).compute(),
            lambda x: x * x + x**3,
        ),
        (lambda x: sum(dask.compute(one(square)(x), one(square)(one(abs)(x)))), lambda x: 2.0 * x * x),
        (lambda x: (one(square)(x) * one(square)(x) + 1).compute(), lambda x: x**4),
        (
            lambda x: bag.from_sequence([x, 2.0 * x], npartitions=2).map(square).sum().compute(),
            lambda x: 5.0 * x * x,
        ),
        (
            lambda x: bag.from_sequence([1.0, 2.0], npartitions=2).map(lambda k: k * x * x).sum().compute(),
            lambda x: 3.0 * x * x,
        ),
        (lambda x: client.get({"a": x, "b": (square, "a"), "c": (square, "b")}, "c"), lambda x: x**4),
        (lambda x: one(abs)(-2.0).compute() * x, lambda x: 2.0 * x),
    ]
    for n, (f, plain) in enumerate(programs):
        expected = plaingrad.grad(plain)(0.5)
        assert plaingrad.grad(f)(0.5) == pytest.approx(expected, rel=1e-14), n
        assert plaingrad.derivative(f)(0.5) == pytest.approx(expected, rel=1e-14), n
    assert plaingrad.grad(plaingrad.grad(programs[2][0]))(0.5) == pytest.approx(3.0)
    for program in (
        lambda x: one(square)(client.submit(square, x)).compute(),
        lambda x: client.submit(square, x, actor=True).result(),
    ):
        with pytest.raises(plaingrad.RoundTripError):
            plaingrad.grad(program)(3.0)
    assert plaingrad.grad(lambda x: one(square)(x).compute(scheduler="threads"))(3.0) == 6.0
