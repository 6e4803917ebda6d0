"""hascheduler: a highly available job scheduler on MongoDB and RabbitMQ. This is the map.

::

    client   the SDK: HTTP, nothing else of this package but its errors
    testing  a whole scheduler in a test's own process, on virtual time, with its stores in memory

    cli ─► demo ─► assembly      the only module that knows both the daemon and the technologies,
              shards             several shards as one deployment, around whole schedulers that do not know each other
            assembly_api         the part of assembly for HTTP, which only replicas import,
            assembly_processor   and the part for processors
            handlers  │          ready-made handlers, built on the SDK of processors
            bootstrap │          a replica set and its users, before anything else runs
      ┌───────┬───────┼────────┬────────┬──────────┬──────────┐
    daemon   api  processor  mongo  rabbitmq  kubernetes  embedded     the world, one technology a room
      └───────┴───────┴────┬───┴────────┴──────────┴──────────┘
           tls  gc_tuning  │  lifecycle  telemetry    a process: certificates, memory, signals, observability
           compiled        │                          which of the pure rooms run as native code
                       ┌───┴────┐
                     ports      │     all that the pure side needs from the world
                       │     simulate        what would happen                  ┐
                       ├────────┘                                               │
                     check      what must never happen                          │
                        dispatch   what to do: facts in, decisions out          │
                           │                                                    │ pure: no await, clock,
                         mirror    MongoDB's state, from one ordered stream     │ randomness, logging, driver
                        ┌──┴───┐                                                │
                   triggers  election   when;  may I lead?                      │
                        └──┬───┘                                                │
                         schema    each noun once: value, document, request     │
                         model     the life of a job as a table, what packs     │
                         errors                                                 ┘

Imports point downwards only; a linter checks it. Data flows in one direction::

    HTTP ─► MongoDB ─► change stream ─► mirror ─► dispatch ─► journal ─► MongoDB ─► broker ─► processor ─► MongoDB

Three walls keep it safe, each sufficient without the ones before it: the lease (`election`), the journal as a fence
(`daemon.leadership.fence`), and a compare-and-set on every job (`model.job`).
"""

__version__ = "0.3.0"
