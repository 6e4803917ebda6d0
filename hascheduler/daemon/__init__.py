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

* `leadership`: the lease, the fence, a term from its beginning to its end, and the reports on it.
* `loop`: from the change stream to applied decisions.
* `outbound`: messages to processors, events, and the job ends that requests wait for.
* `router` sends each fact of the stream to its consumer.
* `readiness` shows if this replica can answer and lead; the API reads `view`.

Every replica runs all loops, all the time; leading only opens the committer. `replica.py` shows the whole.
"""
