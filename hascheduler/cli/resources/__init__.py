"""Definitions, lanes, calendars, tenants and tokens: the commands of each in a file of its own; and ``hascheduler
apply``, which makes schedules, definitions, lanes, calendars and tenants as files describe them.

``named`` is what the commands of the first three have in common, ``uses`` what keeps one of them from being pruned.
"""
