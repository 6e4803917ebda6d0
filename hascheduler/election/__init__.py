"""May I lead? A pure state machine over one lease record.

::

                    free, expired by my own clock,
                    or its process proved dead
        ┌──────────┐  Create / Take (term + 1)   ┌─────────┐
        │ follower │ ──────────────────────────▶ │ leader  │ ── Renew every retry_period
        └──────────┘ ◀────────────────────────── └─────────┘
              a write lost, another record seen,
              or renew_deadline since the start of the last good renewal

What the lease promises: at most one *live, unpaused* process believes in it at a time, and somebody leads soon after a
leader is gone. What it does not promise: that an old leader has stopped. Clocks stop, processes are paused between a
check and a write. Keeping leaders apart is the journal's work (`hascheduler.daemon.fence`); this room is about
liveness only, which is why a challenge that comes too early is safe.

Remote timestamps are never compared: a candidate waits ``lease_duration`` on its own monotonic clock from when it last
saw the record *change*. Source of the timing rules: Kubernetes client-go ``leaderelection``.
"""
