"""Applies the leader's decisions to jobs, schedules and verdict records, in groups.

::

    claims ──┬─► time_outcomes ──┬─► fired_jobs         inserts the jobs of nominal times
             │                   ├─► verdict_records    records the times that do not fire
             │                   └─► the cursors, along `hascheduler.dispatch.schedules.planner`
             ├─► cursor_resets                      takes cursors back, and verdicts with them
             ├─► failure counts of schedules
             └─► job_updates                            dispatch, requeue, fail, cancel jobs that exist

Every decision stands in the journal, with a majority behind it, before it comes here. So whatever fails or is lost is
applied again, and everything here is idempotent: each decision is answered by a `Settlement`.
"""
