"""What forward and reverse mode share: the parts of a program, what is active in it, and slopes of scalars.

`Transform` is the base of both. Called by `reverse`, `forward` and the special forms of loops.
"""
