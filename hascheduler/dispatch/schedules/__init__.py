"""The nominal times of schedules: which are in force, what happens to each, and which are still to come.

`backfill` and `previews` serve people rather than the leader: which jobs a backfill would make, and when a trigger
will fire. The HTTP API and the CLI share them, so they give the same answers.
"""
