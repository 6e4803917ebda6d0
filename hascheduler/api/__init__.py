"""The HTTP API, the same on every replica: it writes through the ports and reads from its replica's mirror.

::

    http ──► edge, by middleware ─────────────────────────────► routing ─────────────► jobs, schedules, work,
    connection  metrics ► timeouts ► audit ► cross_site ► auth ► limits   hot_routes, or FastAPI  resources, ops
                                                                             │                      │
             ◄───────────────────── problem+json ◄───────── route_rules ◄────┘     ports ◄ admission ◄┘

Each room begins with what it answers. `hot_routes` are the five routes that are called for each job.

Nothing here owns jobs, schedules or decisions. What must hold: a refused request has written nothing; every refusal is
problem+json (RFC 9457) and names the field, what is wrong with it and what would be right; no input is a 500; every
request is bounded in size, time and number, and no token or address can take all of a limited resource
(`hascheduler.api.http.limits`). An edit is one compare-and-set on the revision it was made from, and an edit that
changes nothing is not written. A response may be sent back as a request. A stored document is never returned as it is:
a response has only the fields that its model names.
"""
