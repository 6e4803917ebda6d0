"""The HTTP API, the same on every replica: it writes through the ports and reads what its replica mirrors.

::

    connection ─► guard ─► audit trail ─► browser door ─► access door ─► turnstile ─► route ─► body ─► schemas ─► noun's
      (heads)     (time)    (who, what)  (Host, Origin)     (tokens)      (shares)            (JSON)  (fields)    file
                    └─────────────────────── problems ◄───────────────────────────────────────┘  admission, port ◄─┘

Nothing here owns state. What must hold: a refused request has written nothing; every refusal, whoever makes it, is
problem+json (RFC 9457) and names the field, what is wrong with it and what would be right; no input is a 500; every
request has a bound on its size, its time and its number, and no token or address can take all of what there is only
so much of (`hascheduler.api.pools`). An edit is one compare-and-set on the revision that it was
made from, and what changes nothing is not written. What is shown may be sent again. Stored documents never leave as
they are: only what a response model names.
"""
