"""Operations: one action on all jobs or schedules that match. A request begins one and is answered at once.

::

    POST /v1/operations ─► count ─► one document ─► queue of this replica ─► runner: slice ─► save ─► pause ─► slice …
                                        ▲                                                      │
    GET …/{id}, POST …/{id}/stop ───────┘                    a request to stop is met here ◄───┘

``bodies`` is what people send and see, ``selection`` what a filter means for each action, ``slices`` carries out one
slice of an action, ``runner`` is the one loop that runs the slices of all operations of this replica in turn.

What must hold: a job or schedule is met once, however long the operation takes, but for at most one slice after the
death of a replica; and of what a slice does again, a trigger makes no second job. What is submitted after an operation
began is not its own. All operations of a replica together have one slice under way, and rest as long as they work.
"""
