"""The jobs that wait, and which of them goes next.

::

    PendingQueue ─► LaneTier     one lane and one tier, as far as the policy begins with those
                     └─► ClassQueue    one scheduling class, one aging rate (and one priority, if priorities age)
                          └─► TenantQueue  one tenant, if the policy is fair
                               └─► FifoBucket  one fairness key, one priority: oldest first
    LockWaiters: jobs that a lock holds back

`comparison` puts their first jobs in order. `criteria` has one class per criterion of the policy, and the formulas;
`orders` derives this structure from the order of the criteria. `fifo_buckets` also measures how long jobs have waited.
"""
