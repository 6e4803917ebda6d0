"""The check of invariants: what is broken in the database that should never be.

Each rule is a function of stored documents and the time (the log of who changed what is another feature: ``audit``).

::

    documents ──► rules ──► suspects ──► the same rules on the same documents, a while later ──► findings
                   │
                   ├─ nominal_times   one verdict for each time that was decided        ┐
                   ├─ schedules       nothing is due for long and undecided             │
                   ├─ jobs            nothing is stuck, orphaned or stranded            │ one file each,
                   ├─ waiting         nothing waits beside a free slot                  │ hardly any knows another
                   ├─ journal         no gap, terms only rise, nothing left undone      │
                   ├─ leadership      lease and journal agree, and a replica leads      │
                   ├─ shards          all is in the shard of its tenant, by one name    │
                   └─ documents       all can be read                                   ┘

    finding    what a rule reports, the collector of findings, and their report
    config     the settings and graces that rules depend on

Nothing here writes, and no finding repairs anything: each says what to run or to look at. A live system is always in
motion, so each rule has a grace, and a finding that motion could explain is reported only if a second look at the same
document finds the same version of it (`Finding.witness`). Instants in documents come from the clocks of many machines;
``now`` is the database's, and no grace is shorter than a minute.
"""
