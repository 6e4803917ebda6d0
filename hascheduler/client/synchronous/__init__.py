# Written by scripts/generate-client from hascheduler/client/asynchronous/__init__.py: change that one.
"""`Scheduler` and its parts, for programs without a loop. Threads may share one."""
