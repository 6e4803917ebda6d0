"""The ledger of CPU: what a job costs, by process and by part.

::

    counters   the kernel's and MongoDB's counts at one instant ──┐
    samples    the stacks and turns that a phase has added ───────┼─► accounts   what one load cost, without the rest
    parts      which part of the system a stack belongs to ───────┘       └─► tables, picture

CPU by process is the kernel's. Parts are shares of it, by samples (`tests.bench.sampled`), so they sum to it; of
servers they are the names of their threads. What is spent at rest is measured in the same run and shown apart.
`tests.bench.cost` runs it all.
"""
