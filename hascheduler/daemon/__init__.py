"""One replica: the loops that carry data between the world and the core. It knows the ports, and no technology.

::

    ChangeSource ─► feeder ─► mirror ─► inbox ─► stepper (core) ─► committer ─► publisher ─► Transport
                      │                   ▲                       │ journal, apply (term by term)
                      │ lease, own beats  └────── settlements ────┘
                      ▼
                   leader (elector, takeover) ◄── vigil (proof of death)      presence, liveness
                      │
                      └► witness ─► event log ─► /v1/events, announcer (a topic exchange)
                         bells   requests that wait for the end of a job, or for work

Every replica runs all of them, all the time; leading only opens the committer. `replica.py` shows the whole.
"""
