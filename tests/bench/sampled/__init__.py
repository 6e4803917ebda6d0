"""Where a Python process spends its CPU, seen from outside, without a line in the process's own code.

::

    cost ── PYTHONPATH, BENCH_SAMPLES ──► a replica ── sitecustomize ──► a handler of SIGPROF
      │                                                                     │ each 10 ms of CPU: the running stack
      └── `tests.bench.ledger.samples` reads what a phase has added ◄───────┘ <pid>.stacks, .turns, .price

Python runs a `sitecustomize` on its path before anything else. This one has the kernel interrupt the process after each
10 ms of CPU, of all its threads together, and writes the stack at the next point between two instructions. So what C
code does, the compiled core's too, is charged to the frame that called it, or to the first Python code that it calls.

The turns of the event loop are libuv's own count, written down once a second. What one sample costs is measured by each
process before it begins.
"""
