"""Check the database for states that should never occur.

Each rule is a function of stored documents and the time. Nothing here writes: a finding says what to run or to check. A
live system is always in motion, so each rule has a grace, and a finding that motion could explain is reported only if a
second scan finds the document at the same version (`Finding.witness`). Instants in documents come from the clocks of
many machines; ``now`` is the database's, and no grace is shorter than a minute.
"""
