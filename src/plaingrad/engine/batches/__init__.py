"""Batches: a function of one example runs once, with a batch axis carried beside its values.

In comes a function with arguments of which some are `Mapped`, arrays with an axis of examples in front; out goes its
result for all examples (`run.try_batch`), or None where that cannot be known to be what a loop gives. Called by
`api.batches`.

A `BatchLevel` is a set of hooks that rewritten code calls. A step on mapped values is one of NumPy on whole batches, of
the tables `numpy_steps` and `python_steps`, computed by `forms` one level out, so that it is differentiated like any
other. The run may change nothing outside it (`admitted`), so it is given up at any point, and the loop begins as if
nothing had been.
"""
