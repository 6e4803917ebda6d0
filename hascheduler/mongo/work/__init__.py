"""What processors write: registrations, heartbeats, and the start and end of their attempts.

::

    store ──┬─► request batcher ─► starts      dispatched → running         ──remembers──► started_attempts
            └─► request batcher ─► finishes    running → how it ended       ◄──asks────────────┘

Each write of a job names the attempt and the processor, so a duplicate message or a processor that has lost its attempt
changes nothing.
"""
