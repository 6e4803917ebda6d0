"""What is broken in the database that should never be: rules, each a function of stored documents and the time.

::

    documents ──► rules ──► suspects ──► the same rules on the same documents, a while later ──► findings
                   │
                   ├─ nominal_times   one verdict for each time that was decided        ┐
                   ├─ schedules       nothing is due for long and undecided             │
                   ├─ jobs            nothing is stuck, orphaned or stranded            │ one file each,
                   ├─ waiting         nothing waits beside a free slot                  │ no file knows another
                   ├─ journal         no gap, terms only rise, nothing left undone      │
                   ├─ leadership      lease and journal agree, and somebody leads       │
                   └─ documents       all can be read                                   ┘

Nothing here writes, and no finding mends anything: each says what to run or to look at. On a live system something is
always in motion, so each rule has a grace, and whatever motion could explain is reported only if a second look at the
same document shows the same version of it (`Finding.witness`). Instants in documents are by the clocks of many
machines; ``now`` is the database's, and no grace is shorter than a minute.
"""
