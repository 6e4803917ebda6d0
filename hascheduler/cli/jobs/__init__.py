"""``hascheduler job``, ``why`` and ``events``: submit jobs, see them, wait for them, change them."""
