"""The plain tier: exact derivatives of any Python, from rewritten bytecode and the hooks that it calls.

The rooms, from the top: `checkpoints`, `sparsity` and `taylor` (ways of using the modes); `forward` and `reverse`
(the modes); `calls` (what every mode does with an operation or a call); `values` (what else a program keeps numbers
in) and `fusion` (generated code for what runs most); `users_code` (the program's functions, classes and generators);
`memory` (arrays, tapes, slots); `refusals` (errors). A room imports from those below it only. `api` and `extend`
come in at the top.
"""
