"""Where each live job stands: waiting, holding a slot, set apart, or orphaned.

`table` owns the jobs and derives their places; `deadlines` says when a job's time is over, `dependencies` which job
waits for which, `by_schedule` which live jobs come from one schedule.
"""
