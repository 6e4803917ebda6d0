"""The check of invariants: what is broken in the database that should never be.

Each rule is a function of stored documents and the time. Nothing here writes: a finding says what to run or to look at.
A live system is always in motion, so each rule has a grace, and a finding that motion could explain is reported only if
a second look at the same document finds the same version of it (`Finding.witness`). Instants in documents come from the
clocks of many machines; ``now`` is the database's, and no grace is shorter than a minute.
"""
