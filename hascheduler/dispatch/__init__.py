"""The deterministic core: facts in, decisions out. No await, clock, randomness, logging or driver.

::

    Input ──► Dispatcher.step(now, inputs) ──► Step: decisions ──► journal, then applied, then published
                │                                    sends     ──► published (promised already)
                ├─ schedules  which nominal times are due, and what happens to each
                ├─ live_jobs  the state of each job; deadlines and dependencies
                ├─ queue      the pending jobs, in the policy's order
                ├─ capacity   what may run now, and on which processor
                └─ ledger     what was promised and has not come back in the stream yet

A job takes the same way: a schedule fires it (or the stream shows it submitted), it becomes a live job, it waits in the
queue until capacity admits it, and it is dispatched; then `live_jobs` watches it to its end. `state` puts these parts
together. `accounts` keeps what tenants and fairness keys have consumed, by which a fair policy orders jobs.

`decisions`, `inputs` and `step` are the vocabulary. `settlements` (of jobs) and `schedules.cursor_steps` (of nominal
times) tell from the database if a decision may still be applied, and if it was. `explainer` explains why a job waits.
`recording` and `state_snapshot` record what a leader knew and decided.

Every replica folds the same facts; only one that has received `TermBegan` decides. A decision takes effect in here at
once, as a promise: its job holds its slot and its nominal time is spent. The promise ends when the stream shows what
was promised, or when applying it shows that another writer was first. Nothing is promised twice and nothing forgotten:
a promise that does not come back in time is decided again, which is harmless, as every decision is idempotent.
"""
