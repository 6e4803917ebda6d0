"""Where a Python process spends its CPU, seen from outside, without a line in the process's own code.

::

    cost ── PYTHONPATH, BENCH_SAMPLES ──► a replica ── sitecustomize ──► the interpreter's own handler of SIGPROF
      │                                                                     │ each 10 ms of CPU: the running stack
      └── `tests.bench.ledger.samples` reads what a phase has added ◄───────┘ <pid>.stacks, .turns, .price

Python runs a `sitecustomize` on its path before anything else. This one has the kernel interrupt the process after each
10 ms of CPU, of all its threads together, and `faulthandler` write the stack of the thread that was interrupted. It
does so inside the signal handler. A handler in Python would run at the next safe point of the interpreter, and what C
code does, such as the event loop's system calls, would be charged to the Python code that happens to run next.

The turns of the event loop are libuv's own count, written down once a second. What one sample costs is measured by each
process before it begins.
"""
