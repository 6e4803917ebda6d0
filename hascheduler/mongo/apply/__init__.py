"""Applies the leader's decisions to jobs, schedules and verdict records, in groups.

Every decision stands in the journal, with a majority behind it, before it comes here. So whatever fails or is lost is
applied again, and everything here is idempotent: each decision is answered by a `Settlement`.
"""
