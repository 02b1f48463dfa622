"""The program's own code while a level is open: functions, classes, generators that C code may enter by itself.

In comes a function, class or object met by a level; its special methods run rewritten until the last level closes
(`adopt`), and what began before the level is looked at before it is stepped (`earlier_frames`). Called by `calls`
and `values`.
"""
