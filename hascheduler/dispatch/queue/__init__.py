"""The jobs that wait, and which of them goes next.

::

    PendingQueue ─► LaneTier     one lane and one tier, as far as the policy begins with those
                     └─► ClassQueue    one scheduling class, one aging rate (and one priority, where priorities age)
                          └─► TenantQueue  one tenant, where the policy is fair
                               └─► FifoBucket  one fairness key, one priority: oldest first
    LockWaiters: jobs that a lock holds back

`comparison` puts their first jobs in order. `criteria` has one class a criterion of the policy, and the formulas;
`orders` what their order means for this structure. `fifo_buckets` measures how long jobs have waited, too.
"""
