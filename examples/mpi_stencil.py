"""Heat in a plate over the ranks of an MPI program: `mpiexec -n 4 python examples/mpi_stencil.py`.

Each rank holds some rows of the plate and exchanges the outermost ones with its neighbours at every step (a halo
exchange). How well does the plate conduct at each point? The gradient of the misfit between the temperatures at the end
and those that were measured is taken on all ranks, and compared with that of the same program in one process.
"""

import numpy as np
from mpi4py import MPI

import plaingrad

STEPS, ROWS, COLUMNS = 20, 6, 12  # of rows each rank has as many

world = MPI.COMM_WORLD
line = world.Create_cart([world.size], periods=[False])


def step(u, k):
    """One step of du/dt = k (u_xx + u_yy); the first and last row of u are the neighbours', its edges are insulated."""
    wide = np.pad(u, ((0, 0), (1, 1)), mode="edge")
    inside = wide[1:-1, 1:-1]
    return k * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4.0 * inside)


def misfit(k, start, measured):
    """The misfit of the rows of this rank; the derivative is that of the sum over all ranks."""
    u = np.empty((ROWS + 2, COLUMNS))
    u[1:-1] = start
    halo = np.empty((2, COLUMNS))
    for _ in range(STEPS):
        halo[0], halo[1] = u[1], u[-2]  # where the plate ends
        line.Neighbor_alltoall(np.stack([u[1], u[-2]]), halo)
        u[0], u[-1] = halo[0], halo[1]
        u[1:-1] = u[1:-1] + step(u, k)
    return np.sum((u[1:-1] - measured) ** 2)


def misfit_in_one_process(k, start, measured):
    """The same for the whole plate."""
    u = start
    for _ in range(STEPS):
        u = u + step(np.pad(u, ((1, 1), (0, 0)), mode="edge"), k)
    return np.sum((u - measured) ** 2)


def main():
    """The gradient on this rank, and its largest difference from that of one process."""
    drawn = np.random.default_rng(0)
    shape = (world.size * ROWS, COLUMNS)
    k, start, measured = drawn.uniform(0.05, 0.2, shape), drawn.uniform(size=shape), np.full(shape, 0.5)
    mine = slice(world.rank * ROWS, (world.rank + 1) * ROWS)
    slope = plaingrad.grad(misfit)(k[mine], start[mine], measured[mine])
    serial = plaingrad.grad(misfit_in_one_process)(k, start, measured)
    return world.allreduce(np.max(np.abs(slope - serial[mine])), MPI.MAX), np.max(np.abs(serial))


if __name__ == "__main__":
    difference, largest = main()
    if world.rank == 0:
        print(f"largest slope {largest:.4f}, difference from one process {difference:.1e}")
