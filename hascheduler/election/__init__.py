"""Who may lead: a pure state machine over one lease record.

::

                    free, expired by my own clock, its process
                    proved dead, or both witnesses find it stalled
        ┌──────────┐  Create / Take (term + 1)   ┌─────────┐
        │ follower │ ──────────────────────────▶ │ leader  │ ── Renew every retry_period
        └──────────┘ ◀────────────────────────── └─────────┘
              a write lost, another record seen,
              or renew_deadline since the start of the last good renewal

What is promised
----------------
1. *There is a leader.* Once a majority of the database answers and one replica has a fresh mirror, it leads within
   ``lease_duration`` of the last renewal; at once if the lease was released (SIGTERM) or the leader's process is
   proved dead (`hascheduler.daemon.leadership.liveness`).
2. *One at a time, of those awake.* No two processes that are neither paused nor behind with their clocks believe at
   once that they lead; but a leader that was replaced because it stalled, or was cut off, may still trust its lease
   for the rest of ``renew_deadline``, until it tries to renew or the stream brings the new record.
3. *Terms only rise.* Each leadership has a number that no other had before it, whatever happens to the lease.

The assumptions of 2, and only of 2: monotonic clocks that run at the same rate, but for the margin between
``renew_deadline`` (6 s) and ``lease_duration`` (10 s); a write that is answered was carried out after it was sent.
Nothing is assumed about wall clocks or the length of delays. 3 holds as long as the journal is there: a lease that
was deleted, or set back by hand, is taken with a term above every one in the journal.

What is not promised
--------------------
That an old leader has stopped. Clocks stop; a process is paused between a check and the write after it, for a minute or
a day; a packet with a write in it arrives long after its sender was given up. So nothing may rely on 2. Keeping
leaders apart is the journal's work (`hascheduler.daemon.leadership.fence`), and this room is about liveness only. That
is why a challenge which comes too early is safe, and may be made on proof of death without waiting for the lease.

The window of trust
-------------------
::

    write sent      answered                    renew_deadline after it was SENT: no more decisions
        │──────────────│───────────────────────────────│
        ├──────────── trusted ─────────────────────────┤
                    │──────────────────────────────────────────────────│
               a follower sees the record change        lease_duration after it SAW that: challenges

The leader counts from before the write left, a follower from after it arrived, each on its own clock; remote timestamps
are in the record for people and are never compared. Therefore the leader stops by itself before anybody challenges. A
renewal is made only while the dispatch loop turns: one that hangs loses its lease.

How it fails, and what follows
------------------------------
=====================================  ===============================================================================
the leader's process dies              proof of death, a challenge at once; without proof (its host is gone) the lease
the leader stalls                      a challenge after a short silence (`hascheduler.election.suspicion`); awake again
                                       it finds another record, and could write nothing anyway
it is cut off, with its host or from   the same: if its renewals get no answer, its process does not greet
the database alone
a renewal gets no answer               it may or may not have happened: repeated; trust runs on from the last good one
the lease document is deleted          free at once; the next term is above the journal's
its stream is silent or far behind     not renewed, released if it can be: such a replica is not fit to lead
several want it at once                compare-and-set on (holder, term, renewals): one wins, the others see its record
=====================================  ===============================================================================

Source of the timing rules: Kubernetes client-go ``leaderelection``. It leaves out the fence, and says so.
"""
