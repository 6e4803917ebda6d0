"""Several shards as one deployment: a ring around whole schedulers that do not know each other.

::

    process   uvicorn ─► edge: token, limits, audit, metrics (once, for one shard or many)
                           │ caller
    shards/   gateway ── layout ── names            hosting ── placement         moves · copies · turns
                │  │       (home, by CAS)               │ begin, leave, hand over   (by CAS, whoever runs them)
                │  └─ merging · events · batches        ▼
                │     (each shard's public routes)   ┌─ one whole shard, n times ─────────────────────────────┐
                ├─ hosted here ─────────────────────►│ routes(services) · stream ► mirror ► core ► journal    │
                └─ peers: a replica that hosts it    │ its database: jobs schedules holds replicas lease …    │
                   (the whole request)               └────────────────────────────────────────────────────────┘

A shard is a database with its own stream, lease, journal and leader. The first one, the *home*, also keeps what all
share: the layout (which shard has which partition), the names of schedules, definitions and other nouns, tokens, audit.

Who owns what: the home's documents change by compare-and-set on a revision. Each shard's database owns its holds (put
by the ring, released by that shard's leader through its journal), copies of nouns and everything else. A process owns
which shards it hosts. Safety inside a shard needs no part of the ring.
"""
