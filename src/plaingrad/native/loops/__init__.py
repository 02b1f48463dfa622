"""Special forms of loops in reverse mode: loops and array statements that have a faster way back than the general one.

In comes a loop, or a run of statements on arrays, and the reverse transform that meets it; out go statements for the way
forward and for the way back, or nothing where no form fits. `forms` is the list of them, which `compile` hands to
reverse mode.
"""
