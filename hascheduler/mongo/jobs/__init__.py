"""Jobs as the API submits, changes, lists and counts them.

::

    store          `MongoJobStore`, on the others
    submissions    inserts: idempotency keys, unique keys, many submits in one exchange
    lists          pages of jobs along the index that fits
    counts         how many jobs match, by state, with bounded work
"""
