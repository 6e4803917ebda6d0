"""Definitions, lanes, calendars, tenants and tokens, and ``hascheduler apply``, which applies files of them."""
