"""Tasks that run in other processes, as steps of a derivative.

In comes a task (a function and its arguments, on their way to a worker) with differentiated numbers among them; out
go two steps: `fork` where the arguments leave, `join` where the result arrives. On the way back `join` hands the
cotangent of the result to a worker, which goes back over the tape that it has kept of the task (`tapes`, asked by
`lines`), or runs the task again as a derivative of its own, and `fork` waits for what comes of that; so tasks that ran
side by side are gone back over side by side, too. `transfer` takes apart what goes by pickle, `workers` begins tasks,
`steps` has the two steps and the functions that a worker runs. Processes that the program
starts by itself are a family: `members` are connected to those that have started them, `family` says what a message
through a queue is on the way back. Imported when the first differentiated number leaves for another process; called by
`engine.communication.other_processes` and `families`.
"""
