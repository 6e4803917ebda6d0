"""``/v1/simulations``: what would happen under other policies, computed in a process beside the replica.

::

    routes ──► process: one child at a time ──stdin──► child: hascheduler.simulate, within limits of its own
                  │                                      │
                  └────────────◄──────stdout─────────────┘

Nothing of a simulation runs on the loop of the replica, which may lead: `process` starts, feeds, bounds and ends the
child, `child` is what runs in it. It writes no file and reads none but the package.
"""
