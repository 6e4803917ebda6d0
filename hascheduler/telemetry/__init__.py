"""What a process tells of itself to whoever runs it: metrics, health, traces, and what stands on every line of its log.

::

    daemon ────┐ count      ReplicaMetrics   ┐
    api ───────┼──────────► HttpMetrics      │                  the API's port, with its tokens
    processor ─┘            ProcessorMetrics ├─► registry ─► text ─┤
    view, processor ◄────── gauges           ┘    (one a process)  the health port, beside /livez /readyz /leaderz
                  are asked                                        that answers before the database does

It decides nothing, and fails alone. Counters move where a thing happens; gauges are read when somebody asks, and one
that can't be read is missing and counted. Names that callers choose are bounded (`labels`).
"""
