"""The place of each live job: waiting, holding a slot, set apart, or orphaned.

`table` owns the jobs, derives their places and knows which come from one schedule; `deadlines` tells when a job's time
is over, `dependencies` which job waits for which.
"""
