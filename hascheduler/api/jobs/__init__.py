"""``/v1/jobs``: submit one or many, list, explain, change.

::

    submit ─┐
            ├─► body ─► dependencies ─► admission ─► store: 201, or 200 for a repeat ─► (submit: wait for the end)
    batch ──┘

`submit` and `batch` make a job once, whatever is repeated (`idempotency`), and within the caller's trace; a batch goes
level by level. `read` lists, shows and explains (`why`), `changes` cancels, reprioritizes and
retries one job or all that match. `batch_bodies` and `responses` are the wire format.
"""
