"""What leaves the process: messages to processors, events of jobs, and what held requests wait for.

::

    committer, stepper ─► publisher (message_spans) ─► Transport
    mirror ─► event tail ─► event log ─► followers of /v1/events
                                └──────► event publisher (the leader's) ─► EventExchange
    router ─► waiters ─► requests that wait for the end of a job, or for work

Nothing here may hold up a decision: queues are bounded, what does not fit is dropped and repaired (a message is
published again by the core, a follower that is too slow gets `Lagging`).
"""
