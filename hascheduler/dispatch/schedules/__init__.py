"""The nominal times of schedules: which are in force, what becomes of each, and which are still to come.

`backfill` and `previews` serve people rather than the leader: which jobs a backfill would make, and what a trigger is
going to do. The HTTP API and the CLI share them, so they give the same answers.
"""
