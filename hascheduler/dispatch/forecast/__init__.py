"""What is to come: how many jobs are going to start when, for how many slots, and how long they are going to wait.

::

    schedules ──► fires ──► jobs a minute, ──► caps of definitions ──► slots that ──► peaks, in words
                            with their costs    (queueing)              they share     (queueing)

A forecast is a fluid model in steps of a minute: a job takes its learned cost (else the default cost of its
definition), what arrives first begins first, and each pool (the definitions that live processors have in common) has
the slots that it has now. So it costs about as much for a million fires as for a thousand.

What it leaves out: jobs that people and programs are going to submit; retries, failures and lost attempts; resources
besides slots; limits of tenants, of keys, of tiers, conflict groups and rates; overlap policies; the order that the
policy gives; processors that come or go; waits of less than a minute. Jobs that wait for others of their graph begin
when those have had their time. Where two definitions share only some processors, each is capped by the slots that it
could take, and the pool is the sum.

What holds: every fire that is counted arrives once and begins once or waits at the end; more slots never let a job of a
pool begin later. Whole numbers only, so two replicas that know the same say the same, but for those fires that are
spread evenly because there are too many.
"""
