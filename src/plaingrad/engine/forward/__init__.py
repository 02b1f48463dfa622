"""Forward mode: tangents, one or a chunk of them, carried along with the program.

In comes a function with its arguments and their tangents; out goes what it returns with its tangents (`push.push`).
Called by `api`, by `extend` and by Taylor mode; `mixed` hands tangents to a reverse level around.
"""
