"""What goes to other threads, processes and ranks while a level is open, and what comes back.

In come calls of executors, pools and communicators with the level at which they are made. Out go functions that do
the same and record it: tasks that run at the level of who handed them out (`bound_to_level`), tasks of pools of
processes and their results (`other_processes`, `results_in_turn`), processes that are started (`families`, `forked`),
what lives on of them (`kept`), and what goes through queues and pipes (`envelopes`), messages between ranks
(`messages`, `collectives`). `engine.calls.elsewhere` chooses among them; what they send is taken apart by
`rules.processes` and `rules.mpi`.
"""
