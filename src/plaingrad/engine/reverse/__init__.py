"""Reverse mode: a run is recorded on a tape, and cotangents are pulled back through it, any number of times.

In comes a function with its arguments and which of them are differentiated; out goes a `Run`: the value, and `pull`,
which turns a cotangent of it into gradients. Called by `api`, by `extend`, by forward mode (to transpose a pullback)
and by the native tier.

A `ReverseLevel` is its tape (`recording`), steps of rules (`rules`) and of `arrays`. `inputs` makes arguments fresh
before the run and puts them back after it. `nested_reverse` and `reverse_in_forward` are the way back under another
derivative, `transpose` makes a rule of one mode serve the other.
"""
