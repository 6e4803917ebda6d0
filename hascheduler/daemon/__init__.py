"""One replica: the loops that carry data between the world and the core. It knows the ports, and no technology.

::

    ChangeSource ─► feeder ─► mirror ─► inbox ─► stepper (core) ─► committer ─► publisher ─► Transport
                      │                   ▲                       │ journal, apply (term by term)
                      │ lease, own beats  └────── settlements ────┘
                      ▼
                   leader (elector, takeover) ◄── vigil (proof of death)      presence, liveness

Every replica runs all of them, all the time; leading only opens the committer. `replica.py` shows the whole.
"""
