"""What every request passes on its way to a route, and every answer on its way back.

::

    metrics ─► timeouts ─► audit ─► cross_site ─► auth ─► pools ─► route

The order matters: every refusal is counted and audited, a forged request of a browser is refused before it learns
anything about tokens, and a request is charged to its caller as soon as `auth` has identified that one.
"""
