"""Forward mode: tangents, one or a chunk of them, carried along with the program.

In comes a function with its arguments and their tangents; out goes what it returns with its tangents (`push.push`).
Called by `api`, by `extend` and by Taylor mode; `mixed` hands tangents to a reverse level around.

A `ForwardLevel` is its table of tangents (`tangents`), rules pushed forward (`rules`) and `arrays`; `pushing` is the
arithmetic that they do on tangents, which runs rewritten under an outer derivative.
"""
