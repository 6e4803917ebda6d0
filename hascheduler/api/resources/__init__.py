"""``/v1/definitions``, ``/v1/lanes``, ``/v1/tenants``, ``/v1/tokens``, ``/v1/whoami`` and ``/v1/audit``.

Definitions, lanes and tenants are written as a whole under their names: `handler` has their operations. The file of a
resource has its body, its answer and its routes.
"""
