"""What to do: the deterministic core. Facts in, decisions out; no await, clock, randomness, logging or driver.

::

    Input ──► Dispatcher.step(now, inputs) ──► Step: decisions ──► journal, then applied, then published
                │                                    sends     ──► published (promised already)
                ├─ fires      which nominal times are due
                ├─ waiting    pending jobs, in the policy's order
                ├─ pool       processors and their slots
                └─ ledger     what was promised and has not come back in the stream yet

Every replica folds the same facts; only the one that was told `TermBegan` decides. A decision takes effect in here at
once, as a promise: its job holds its slot and its nominal time is spent. The promise ends when the stream shows what
was promised, or when applying it says that somebody else was first. Nothing is promised twice, nothing forgotten: a
promise that does not come back in time is decided again, which is harmless, as every decision is idempotent.
"""
