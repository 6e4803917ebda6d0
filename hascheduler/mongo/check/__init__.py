"""Reads the database for the check of invariants; `hascheduler.check` judges what is read.

``scan`` has the order of the reads and the second look at suspects; one file for each collection or group of them;
``pace`` bounds how much one scan asks of the database. Nothing here writes.
"""
