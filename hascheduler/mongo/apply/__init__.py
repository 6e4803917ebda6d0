"""Apply the leader's decisions to jobs, schedules and verdict records, in groups.

Every decision is in the journal, acknowledged by a majority, before it comes here. Whatever fails or is lost is applied
again, so everything here is idempotent: each decision gets a `Settlement`.
"""
