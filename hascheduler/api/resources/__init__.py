"""``/v1/definitions``, ``lanes``, ``calendars``, ``tenants``, ``tokens``, ``whoami`` and ``audit``.

Definitions, lanes, calendars and tenants are written as a whole under their names: `named` has a row of each, and
`named_routes` makes their routes.
"""
