"""The command line, ordered by what the user does: a room for each group of commands, besides `input` and `output`.

A command reads its input, asks a replica over HTTP and shows the answer. Only the commands of ``run`` and ``setup``
work on servers themselves. The exit status is 2 for the caller's fault, 1 for the world's (`hascheduler.__main__`).

A command imports heavy modules only where it needs them, so that ``--help`` and completion answer at once
(`hascheduler.cli.lazy_groups`).
"""
