"""Definitions, lanes, calendars, tenants and tokens, and ``hascheduler apply``, which makes them as files say."""
