"""``/v1/jobs``: submit one or many, list, explain, change.

::

    submit ─┐
            ├─► body ─► dependencies ─► admission ─► store: 201, or 200 for a repeat ─► (submit: wait for the end)
    batch ──┘

`submit` and `batch` make a job once, even if the request is repeated (`idempotency`), and within the caller's trace;
a batch is inserted level by level. `read` lists, shows, counts and explains (`why`), `errors` groups dead letters,
`changes` cancels, reprioritizes and retries one job, `all_that_match` all that match.
"""
