"""Messages between the ranks of an MPI program, as exchanges: what the ranks send each other for their derivatives.

In comes what a rank gives to a communication and what it gets from it, as numbers and arrays; out goes how cotangents,
or tangents, take the way back, or along: `exchanges`, by kind. They are sent by the program's own communicator
(`channel`), with mpi4py's functions, so a level further out differentiates them in turn. `numbers` finds the numbers
in what goes by pickle, `definitions` says what communications of buffers are in terms of those of objects. Called by
`engine.communication.messages`, when a differentiated function communicates.
"""
