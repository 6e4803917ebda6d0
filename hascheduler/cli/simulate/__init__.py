"""``hascheduler simulate`` and ``record``: what would happen, without a server, and what a leader decided."""
