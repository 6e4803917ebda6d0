"""What to do: the deterministic core. Facts in, decisions out; no await, clock, randomness, logging or driver.

::

    Input ──► Dispatcher.step(now, inputs) ──► Step: decisions ──► journal, then applied, then published
                │                                    sends     ──► published (promised already)
                ├─ times      schedules: `fires` knows what is due, `conclusions` what becomes of it, `failures` counts
                ├─ waiting    pending jobs, in the policy's order
                ├─ pool       processors and their slots
                └─ ledger     what was promised and has not come back in the stream yet

What the tenants have consumed, and the fairness keys of each, is in `accounts`: the order of the jobs depends on it
where the policy is fair, first among tenants, then among the keys of one.

Two more rooms are shared with the world outside: `stretches` and `edits` say which nominal times are in force and what
an edit makes of them, `chain` and `judge` whether a decision may still be carried out, and whether it was.

Every replica folds the same facts; only the one that was told `TermBegan` decides. A decision takes effect in here at
once, as a promise: its job holds its slot and its nominal time is spent. The promise ends when the stream shows what
was promised, or when applying it says that somebody else was first. Nothing is promised twice, nothing forgotten: a
promise that does not come back in time is decided again, which is harmless, as every decision is idempotent.
"""
