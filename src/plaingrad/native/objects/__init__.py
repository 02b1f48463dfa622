"""Partial evaluation: a function of objects, lists, dictionaries and closures becomes one of numbers and arrays.

In comes a call whose function Numba cannot type; out goes a Python function of the numbers and arrays in its
arguments, which the rest of the native tier takes like any other. `call` is the door for gradients, `other_operators`
for the rest, `fastest` chooses between tiers, `obstacles` says what stands in the way. The user's text is followed
statement by statement (`statements`, `expressions`, `loops`), with an abstract value for every variable (`values`): a
number or array is a variable of the program that is made, everything else exists at that time only. Where ways meet,
what is known is merged (`merging`). Functions that are called are made once for each structure of their arguments
(`calls`), generators followed in the place of the loops that go through them (`generators`). What is left in arguments
that are changed is returned, and put there after the call (`writing`).
"""
