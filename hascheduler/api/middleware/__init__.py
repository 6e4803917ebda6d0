"""What every request passes on its way to a route, and every answer on its way back.

::

    metrics ─► timeouts ─► audit ─► cross_site ─► auth ─► limits ─► route

`hascheduler.api.edge` goes through these steps, in one frame, and says why they come in this order. Each module here is
what one step judges by.
"""
