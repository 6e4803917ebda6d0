"""One replica: the loops that carry data between the world and the core. It knows the ports, and no technology.

::

    ChangeSource ─► feeder ─► mirror ─► router ─► inbox ─► stepper (core) ─► committer ─► publisher ─► Transport
                      │                   │         ▲                         │ journal, apply (term by term)
                      │ lease, own beats  │         └─────── settlements ─────┘
                      ▼                   ▼
                   leader (elector, takeover) ◄── leader probe (proof of death)      heartbeat, liveness
                      │
                      └► event tail ─► event log ─► /v1/events, event publisher (a topic exchange)
                         waiters       requests that wait for the end of a job, or for work

* `leadership`: who leads. The lease, the fence, a term from its beginning to its end, and what people learn of it.
* `loop`: from the change stream to decisions that are carried out.
* `outbound`: what leaves the process: messages to processors, events, and the ends that requests wait for.
* `router` says where each fact of the stream goes.
* `readiness` says whether this replica can answer and lead; `view` is what the API reads of it.

Every replica runs all loops, all the time; leading only opens the committer. `replica.py` shows the whole.
"""
