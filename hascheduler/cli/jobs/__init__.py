"""``hascheduler job``, ``why`` and ``events``: submit jobs, see them, wait for them, change them.

::

    submit     submit, wait                    batch      the jobs of a file
    show       list, failed, get; why          events     what happens to jobs, as it happens
    changes    cancel, reprioritize, retry
    options    what describes a job, and what selects jobs
    tables     jobs, attempts, and how a job ended
"""
