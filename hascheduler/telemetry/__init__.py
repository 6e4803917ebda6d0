"""What a process shows its operators: metrics, health, traces, and the fields on every line of its log.

::

    daemon ────┐ count      ReplicaMetrics   ┐
    api ───────┼──────────► HttpMetrics      │                  the API's port, with its tokens
    processor ─┘            ProcessorMetrics ├─► registry ─► text ─┤
    view, processor ◄────── gauges           ┘    (one a process)  the health port, beside /livez /readyz /leaderz
                  are asked                                        that answers before the database does

It decides nothing, and fails alone. Counters move where a thing happens; gauges are read at each scrape, and one
that can't be read is missing and counted. Names that callers choose are bounded (`labels`).
"""
