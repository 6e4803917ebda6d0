"""The commands that start processes: ``serve`` and ``processor`` (one process each, for production), ``dev`` and
``demo`` (a whole system on this machine).
"""
