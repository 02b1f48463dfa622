"""Checkpoints: a part of a program is run again on the way back instead of being recorded.

In comes a call whose tape would be too long; out goes its value and one step on the tape that repeats the call when
its cotangent comes. `revolve` plans and runs the repetitions of a sequence of steps, whose `states` it copies;
`segment` keeps what a repetition must find as it was; `forks` looks after processes that fork meanwhile. Called by
`api.checkpoints`.
"""
