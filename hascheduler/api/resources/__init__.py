"""``/v1/definitions``, ``lanes``, ``calendars``, ``tenants``, ``tokens``, ``whoami`` and ``audit``.

Definitions, lanes, calendars and tenants are written as a whole under their names: `handler` has their operations. The
file of a resource has its body, its answer and its routes.
"""
