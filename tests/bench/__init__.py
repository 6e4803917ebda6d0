"""Speed, measured where a user would feel it: real processes on real servers on this machine, all of it included.

``make bench``, or one at a time::

    python -m tests.bench fires --schedules 200 --seconds 30
    python -m tests.bench failover --kills 5

Figures are medians and percentiles with the command that made them. Nothing here is asserted.
"""
