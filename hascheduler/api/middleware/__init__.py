"""The steps that every request passes on its way to a route, and every response on its way back.

::

    metrics ─► timeouts ─► audit ─► cross_site ─► auth ─► limits ─► route

`hascheduler.api.edge` runs these steps, in one frame, and documents why they come in this order. Each module here holds
the rules of one step.
"""
