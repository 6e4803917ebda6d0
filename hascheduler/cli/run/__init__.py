"""The commands that start processes.

``serve`` and ``processor`` run one process each, for production; ``dev`` and ``demo`` run a whole system on this
machine.
"""
