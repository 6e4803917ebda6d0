"""The change stream of the database, and the snapshot that it begins with: everything that a mirror knows.

::

    MongoChangeSource.open(None) ──► ping: operation time T ──► stream that starts at T ──┐
                                                  └──► snapshot in a session that has seen T ──► PUTs, in slices
    MongoChangeSource.open(token) ─► stream that resumes after the token, without a snapshot ──► batches of `Change`

``source`` drives the cursor and its tokens, ``events`` says what the server is asked for and turns one event into a
`Change`, ``snapshot`` reads the live documents. Each write is in the snapshot, in the stream, or in both: never in
neither.
"""
