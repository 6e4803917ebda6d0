"""Speed, measured where a user would feel it: real processes on real servers on this machine, all of it included.

``make bench``, or one at a time, smaller or larger; ``python -m tests.bench --help`` lists what there is::

    python -m tests.bench fires --schedules 200 --seconds 30
    python -m tests.bench failover --kills 5

How it goes::

    __main__   a command each ─► results   medians and spread of several runs
                  │
              jobs, times, stored, moves, stalls, soak, decisions   what is measured, each with its method
                  │
              stacks, load   a system, its load, its processes, what came of it

What happened is read from the handlers' own effects, the journal and the kernel, not from the counters of those that
are measured, but where it says so. Each benchmark has a system of its own; figures are medians and percentiles with the
command that made them, and of what went wrong the worst run. Nothing here is asserted.
"""
