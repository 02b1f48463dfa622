"""Programs of several ranks and the same in one process; run by `test_mpi.py` under mpiexec, which looks at the end code."""

import os
import sys

import numpy as np
from mpi4py import MPI

import plaingrad
from plaingrad import distributed

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
left, right = (rank - 1) % size, (rank + 1) % size
inputs = np.random.default_rng(1).uniform(0.5, 1.5, (size, 4))
mine = inputs[rank].copy()
weights = np.array([0.3, -1.1, 0.7, 2.0])


class Pair:
    """Two numbers."""

    def __init__(self, a, b):
        self.a, self.b = a, b


# Each pair is a program of this rank, whose value is summed over the ranks, and the same sum in one process.


def ring(x):
    """Objects, blocking, with any tag."""
    if rank % 2:
        pair = world.recv(source=left)
        world.send(Pair(x[0] * x[1], [x[2], x[2]]), dest=right, tag=5)
    else:
        world.send(Pair(x[0] * x[1], [x[2], x[2]]), right, 5)
        pair = world.recv(source=left)
    return pair.a * pair.b[0] * pair.b[1] * x[3]


def ring_serial(X):
    return sum(X[r - 1, 0] * X[r - 1, 1] * X[r - 1, 2] ** 2 * X[r, 3] for r in range(size))


def stencil(x):
    """Halo exchange on a ring, two steps, by requests and by Sendrecv, in place; nobody waits in the order of posting."""
    u = np.zeros(6)
    u[1:-1] = x
    for _ in range(2):
        requests = [
            world.Irecv(u[:1], source=left, tag=1),
            world.Irecv(u[-1:], source=right, tag=2),
            world.Isend(u[1:2], dest=left, tag=2),
            world.Isend(u[-2:-1], dest=right, tag=1),
        ]
        MPI.Request.Waitall(requests[::-1])
        u[1:-1] = u[1:-1] + 0.1 * (u[:-2] - 2.0 * u[1:-1] ** 2 + u[2:])
        world.Sendrecv(u[1:2], left, 3, u[-1:], right, 3)
        world.Sendrecv(u[-2:-1], right, 4, u[:1], left, 4)
        u[1:-1] = u[1:-1] * (1.0 + 0.1 * u[2:] * u[:-2])
    return np.sum(u[1:-1] ** 2)


def stencil_serial(X):
    u = X.reshape(-1)
    for _ in range(2):
        u = u + 0.1 * (np.roll(u, 1) - 2.0 * u**2 + np.roll(u, -1))
        u = u * (1.0 + 0.1 * np.roll(u, -1) * np.roll(u, 1))
    return np.sum(u**2)


def dot(x):
    """A distributed dot product, by objects and by buffers, on every rank."""
    total = np.zeros(2)
    world.Allreduce(np.array([np.dot(x, weights), np.dot(x, x)]), total)
    return total[0] ** 2 * world.allreduce(np.sum(x)) * total[1] / size


def dot_serial(X):
    return np.sum(X @ weights) ** 2 * np.sum(X) * np.sum(X * X)


def server(x):
    """A parameter server on rank 0, which serves whoever comes first; the others' parameters do not count."""
    if rank == 0:
        status = MPI.Status()
        loss = x[0] * 0.0
        for _ in range(size - 1):
            world.recv(source=MPI.ANY_SOURCE, status=status)
            world.send({"w": x}, dest=status.Get_source())
        world.barrier()
        for _ in range(size - 1):
            loss = loss + world.recv(source=MPI.ANY_SOURCE, tag=9) ** 2
        return loss
    world.send("ready", dest=0)
    w = world.recv(source=0)["w"]
    world.barrier()
    world.send(np.sum(np.sin(w) * inputs[rank]), dest=0, tag=9)
    return 0.0


def server_serial(X):
    return sum(np.sum(np.sin(X[0]) * inputs[r]) ** 2 for r in range(1, size))


def spread(x):
    """bcast, scatter, gather, allgather and alltoall of objects."""
    root = size - 1
    a = world.bcast([x[0], x[0] * x[1]] if rank == root else None, root)
    b = world.scatter([x[2] * k for k in range(size)] if rank == root else None, root)
    every = world.allgather((x[1], x * b))
    parts = world.alltoall([x[3] * (k + 1.0) for k in range(size)])
    found = world.gather(a[0] * x[0] + every[right][0] * np.sum(every[left][1]) + parts[left] * parts[right] + a[1], 0)
    return 0.0 if found is None else sum(y * y for y in found)


def spread_serial(X):
    last, value = X[size - 1], 0.0
    for r in range(size):
        a, b = (r + 1) % size, (r - 1) % size
        y = last[0] * X[r, 0] + X[a, 1] * np.sum(X[b] * (last[2] * b))
        y = y + X[b, 3] * (r + 1.0) * X[a, 3] * (r + 1.0) + last[0] * last[1]
        value = value + y * y
    return value


def buffers(x):
    """Bcast, Scatterv, Gatherv, Allgather and Alltoall of buffers."""
    first = x * 2.0 if rank == 0 else np.empty(4)
    world.Bcast(first, 0)
    counts = [k + 1 for k in range(size)]
    part = np.empty(rank + 1)
    whole = np.concatenate([x, x**2, x**3])[: sum(counts)] if rank == 0 else None
    world.Scatterv([whole, counts] if rank == 0 else None, part, 0)
    every = np.empty((size, 4))
    world.Allgather(x, every)
    back = np.empty((size, 1))
    world.Alltoall([np.repeat(x[0] * part[0], size), MPI.DOUBLE], back)
    found = np.zeros(sum(counts)) if rank == 0 else None
    world.Gatherv(part * first[1], [found, counts] if rank == 0 else None, 0)
    value = np.sum(every[left] * every[right]) * back[right, 0]
    return value if rank else value + np.sum(found**3)


def buffers_serial(X):
    counts = [k + 1 for k in range(size)]
    whole = np.concatenate([X[0], X[0] ** 2, X[0] ** 3])[: sum(counts)]
    starts = np.cumsum([0, *counts])[:-1]
    value = np.sum((whole * 2.0 * X[0, 1]) ** 3)
    for r in range(size):
        a, b = (r + 1) % size, (r - 1) % size
        value = value + np.sum(X[b] * X[a]) * X[a, 0] * whole[starts[a]]
    return value


def reductions(x):
    """Largest, smallest, product, prefix sums, and sums at one rank."""
    largest = np.empty(4)
    world.Allreduce(x, largest, MPI.MAX)
    smallest = world.allreduce(float(x[1]), MPI.MIN)
    product = world.reduce(x[2], MPI.PROD, root=0)
    before = world.exscan(x[3] ** 2)
    until = np.empty(4)
    world.Scan(x**2, until)
    value = np.sum(largest) * smallest * x[0] + np.sum(until) * x[1]
    value = value + product**2 if rank == 0 else value + before * x[0]
    world.barrier()
    return value


def reductions_serial(X):
    largest, smallest = np.sum(np.max(X, 0)), np.min(X[:, 1])
    value = np.prod(X[:, 2]) ** 2
    for r in range(size):
        value = value + largest * smallest * X[r, 0] + np.sum(X[: r + 1] ** 2) * X[r, 1]
        if r:
            value = value + np.sum(X[:r, 3] ** 2) * X[r, 0]
    return value


def line(x):
    """A Cartesian line without ends: what comes from nobody is as it was."""
    cart = world.Create_cart([size], periods=[False])
    source, dest = cart.Shift(0, 1)
    halo = np.full(1, 0.5)
    cart.Sendrecv(x[:1] ** 2, dest, 0, halo, source, 0)
    value = np.sum(halo * x)
    request = cart.irecv(source=dest, tag=7)
    cart.isend(value, source, tag=7).wait()
    nearby = request.wait()
    return value * (1.0 if nearby is None else nearby)


def line_serial(X):
    values = [np.sum((X[r - 1, 0] ** 2 if r else 0.5) * X[r]) for r in range(size)]
    return sum(values[r] * (values[r + 1] if r + 1 < size else 1.0) for r in range(size))


def parts(x):
    """Sums of which each rank gets a part."""
    own, rest = np.empty(rank + 1), np.empty((2, 1))
    every = np.concatenate([x, x**2, x**3])[: sum(range(size + 1))]
    world.Reduce_scatter(every, own, [k + 1 for k in range(size)])
    world.Reduce_scatter_block(np.repeat(x[:2] * x[2], size), rest)
    return np.sum(own**2) * x[0] + rest[0, 0] * rest[1, 0] * x[3]


def parts_serial(X):
    every = np.sum(np.concatenate([X, X**2, X**3], 1)[:, : sum(range(size + 1))], 0)
    blocks = np.sum(np.repeat(X[:, :2] * X[:, 2:3], size, axis=1), 0)
    value = 0.0
    for r in range(size):
        first = r * (r + 1) // 2
        value = value + np.sum(every[first : first + r + 1] ** 2) * X[r, 0]
        value = value + blocks[2 * r] * blocks[2 * r + 1] * X[r, 3]
    return value


def torus(x):
    """Neighbours on a ring that is a Cartesian topology, and on a directed graph with an edge to the rank on the right."""
    cart = world.Create_cart([size], periods=[True])
    below, above = cart.neighbor_allgather({"x": x[0] * x[1]})
    halo = np.full((2, 2), 7.0)
    cart.Neighbor_alltoall(x, halo)
    graph = world.Create_dist_graph_adjacent([left], [right])
    (found,) = graph.neighbor_alltoall([x[2] * x[2]])
    part = np.empty(4)
    graph.Neighbor_allgatherv(x, [part, [4]])
    return below["x"] * above["x"] ** 2 * np.sum(halo[0] * x[:2] - halo[1]) + found * x[3] + np.sum(part**2 * x)


def torus_serial(X):
    value = 0.0
    for r in range(size):
        a, b = (r + 1) % size, (r - 1) % size
        below, above = X[b, 0] * X[b, 1], X[a, 0] * X[a, 1]
        value = value + below * above**2 * np.sum(X[b, 2:] * X[r, :2] - X[a, :2])
        value = value + X[b, 2] ** 2 * X[r, 3] + np.sum(X[b] ** 2 * X[r])
    return value


def ends(x):
    """Neighbours on a Cartesian line with ends: what comes from nobody is as it was."""
    cart = world.Create_cart([size], periods=[False])
    halo = np.full((2, 1), 0.5)
    cart.Neighbor_alltoall(x[1:3] * x[0], halo)
    return np.sum(halo**2 * x)


def ends_serial(X):
    value = 0.0
    for r in range(size):
        below = X[r - 1, 2] * X[r - 1, 0] if r else 0.5
        above = X[r + 1, 1] * X[r + 1, 0] if r + 1 < size else 0.5
        value = value + (below**2 + above**2) * np.sum(X[r])
    return value


PROGRAMS = [
    (parts, parts_serial),
    (torus, torus_serial),
    (ends, ends_serial),
    (ring, ring_serial),
    (stencil, stencil_serial),
    (dot, dot_serial),
    (server, server_serial),
    (spread, spread_serial),
    (buffers, buffers_serial),
    (reductions, reductions_serial),
    (line, line_serial),
]


def check(f, serial):
    """Every mode, against the derivatives of the serial program."""
    np.testing.assert_allclose(world.allreduce(f(mine.copy())), serial(inputs), rtol=1e-12, err_msg=f.__name__)
    expected = plaingrad.grad(serial)(inputs)
    for _ in range(2):
        value, found = plaingrad.value_and_grad(f)(mine)
        assert value == f(mine.copy()), f.__name__
        np.testing.assert_allclose(found, expected[rank], rtol=1e-11, atol=1e-13, err_msg=f.__name__)
    directions = np.random.default_rng(2).normal(size=inputs.shape)
    dot = plaingrad.jvp(f, (mine,), (directions[rank],))[1]
    along = np.sum(expected * directions)
    np.testing.assert_allclose(world.allreduce(float(dot)), along, rtol=1e-11, err_msg=f"{f.__name__}, forward")
    second = plaingrad.jvp(plaingrad.grad(serial), (inputs,), (directions,))[1]
    found = plaingrad.jvp(plaingrad.grad(f), (mine,), (directions[rank],))[1]
    np.testing.assert_allclose(found, second[rank], rtol=1e-9, atol=1e-12, err_msg=f"{f.__name__}, forward over reverse")
    found = plaingrad.grad(lambda x: np.sum(plaingrad.grad(f)(x) * directions[rank]))(mine)
    np.testing.assert_allclose(found, second[rank], rtol=1e-9, atol=1e-12, err_msg=f"{f.__name__}, reverse over reverse")


def check_losses():
    """A data-parallel loss, whose parts the ranks share out unevenly; one that fails is an error on every rank."""
    parts = [inputs[r] for r in range(size) if r != 1] if rank == 0 else [inputs[1]] if rank == 1 else []
    loss = distributed.value_and_grad(lambda w, part: np.sum(np.sin(w * part)), world, reduce="mean")
    value, slope = loss(weights, parts)
    np.testing.assert_allclose(value, np.sum(np.sin(weights * inputs)) / size, rtol=1e-13)
    np.testing.assert_allclose(slope, np.sum(np.cos(weights * inputs) * inputs, 0) / size, rtol=1e-13)
    try:
        distributed.value_and_grad(lambda w, part: w / part, world)(1.0, [float(rank)])
    except (ZeroDivisionError, RuntimeError) as error:
        assert "rank 0" in str(error) + str(getattr(error, "__notes__", ""))
    else:
        raise AssertionError("nothing raised")


def check_timeout():
    """A rank that takes no derivative is named by one that waits for it."""
    os.environ["PLAINGRAD_TASK_TIMEOUT"] = "0.2"
    try:
        if rank == 0:
            plaingrad.grad(lambda x: world.send(x[0], 1) or x[1])(mine)
        elif rank == 1:
            world.recv(source=0)
    except TimeoutError as late:
        assert rank == 0 and "rank 1 has not sent" in str(late), late
    else:
        assert rank, "nothing raised"
    del os.environ["PLAINGRAD_TASK_TIMEOUT"]


def check_refusals():
    """What is not followed is refused by name."""
    buffer = np.zeros(4)
    group = world.Split(rank % 2)
    between = group.Create_intercomm(0, world, 1 - rank % 2)
    for name, call in [
        ("Ibcast", lambda x: world.Ibcast(buffer, 0)),
        ("irecv", lambda x: world.irecv(source=left)),
        ("Send_init", lambda x: world.Send_init(x, left)),
        ("Reduce_scatter_block", lambda x: world.Reduce_scatter_block(np.zeros(size), np.zeros(1), MPI.PROD)),
        ("allreduce", lambda x: world.allreduce([x[0]])),
        ("allreduce", lambda x: world.allreduce(x[0], MPI.MAXLOC)),
        ("Intercomm", lambda x: between.allgather(x)),
        ("buffer", lambda x: world.Allgather(MPI.IN_PLACE, np.zeros((size, 4)))),
    ]:
        try:
            plaingrad.grad(lambda x, call=call: call(x) and x[0])(mine)
        except plaingrad.MissingRuleError as refusal:
            assert name in str(refusal), refusal
        else:
            raise AssertionError(name)


if __name__ == "__main__":
    try:
        for f, serial in PROGRAMS:
            check(f, serial)
        check_losses()
        check_refusals()
        check_timeout()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        world.Abort(1)
    else:
        print("right")
