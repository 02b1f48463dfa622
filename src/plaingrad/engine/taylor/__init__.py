"""Taylor mode: derivatives of every order along one direction, in one run.

In comes a function, arguments and a direction; out go truncated power series (jets) of what it returns. A level
carries jets as forward mode carries tangents; `jet_rows` has the recurrences of functions. Called by `api.taylor`
and `api.forward`.
"""
