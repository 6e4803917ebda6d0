"""The commands ``hascheduler job``, ``why`` and ``events``: submit, show, wait for and change jobs."""
