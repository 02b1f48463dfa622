"""A chain of springs over the ranks of an MPI program: `mpiexec -n 4 python examples/mpi_chain.py`.

Each rank holds a piece of a closed chain, and reads the first place of the next piece (a halo exchange). The forces are
the gradient of the energy of the whole chain; with them the chain comes to rest.
"""

import numpy as np
from mpi4py import MPI

import plaingrad

world = MPI.COMM_WORLD
left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size


def energy(u):
    """The energy of this rank's springs; the derivative is that of the sum over all ranks."""
    first = np.empty(1)
    world.Sendrecv(u[:1], left, 0, first, right, 0)
    stretched = np.append(np.diff(u), first[0] - u[-1])
    return np.sum(stretched**2 + 0.1 * stretched**4)


def main(size=8, steps=200):
    """Descend, and return the energy of the whole chain before and after."""
    u = np.sin(np.arange(size) + 3.0 * world.rank)
    before = world.allreduce(energy(u))
    for _ in range(steps):
        u -= 0.1 * plaingrad.grad(energy)(u)
    return before, world.allreduce(energy(u))


if __name__ == "__main__":
    before, after = main()
    if world.rank == 0:
        print(f"energy {before:.4f} before, {after:.6f} after")
