"""What is done with an operation or a call at a level, whatever the mode.

In come the hooks' operands: numbers, arrays, objects, functions about to be called. Out goes the result, by a rule,
by rewritten Python code or natively, or a refusal. `level` is one derivative being taken, `calls` its decision what
happens at a call. The modes are subclasses of `Level`; rewritten code calls the hooks.
"""
