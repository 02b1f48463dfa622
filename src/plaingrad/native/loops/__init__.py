"""Special forms of loops in reverse mode: loops and statements on arrays that have a faster way back.

In comes a loop, or a run of statements on arrays, and the transform that meets it; out go statements for the way
forward and for the way back, or nothing where no form fits. `forms` is the list of them; `compile` hands it to reverse
mode. `elements` has the picture that all of them read a loop from, and finds it; `element_code` writes loops over
elements.
"""
