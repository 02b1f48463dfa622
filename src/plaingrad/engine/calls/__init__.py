"""What is done with an operation or a call at a level, whatever the mode.

In come the hooks' operands: numbers, arrays, objects, functions about to be called. Out goes the result, by a rule,
by rewritten Python code or natively, or a refusal. Rewritten code calls the hooks; the modes are subclasses of
`Level`.

`level` is one derivative being taken: its table (`identities`), rules applied to arguments (`rule_application`),
`operators` (with `operands` and `comparisons`), items and elements (`access`). `calls` decides what is called
instead of a function: `appliers` of rules, guards for C code (`c_code`, `search`), builtins of their own
(`specials`, `frames`, `text_functions`, `caution`), work for threads, loops, pools and ranks (`elsewhere`), cached
functions (`memo`), attributes and items of objects (`object_access`, `meeting`). `stop` takes derivatives off values.
"""
