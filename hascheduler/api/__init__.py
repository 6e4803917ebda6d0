"""The HTTP API, the same on every replica: it writes through the ports and reads what its replica mirrors.

::

    http ──► edge, by middleware ─────────────────────────────► routing ─────────────► jobs, schedules, work,
    connection  metrics ► timeouts ► audit ► cross_site ► auth ► limits   hot_routes, or FastAPI  resources, ops
                                                                             │                      │
             ◄───────────────────── problem+json ◄───────── route_rules ◄────┘     ports ◄ admission ◄┘

==============  =======================================================================================
room            what is in it
==============  =======================================================================================
`http`          sockets, connections and their limits, strict JSON, problem+json
`edge`          where every request comes in; it goes through the steps of `middleware`
`middleware`    what every request passes: metrics, time limit, audit, browsers, tokens
`routing`       what every route is made of: its rules, pages, revisions
`hot_routes`    the five routes that are asked for each job
`admission`     how much may be let in: jobs, schedules, workers
`resources`     ``/v1/definitions``, ``lanes``, ``calendars``, ``tenants``, ``tokens``, ``audit``
`jobs`          ``/v1/jobs``
`schedules`     ``/v1/schedules``
`work`          ``/v1/work``, for processors that have neither the broker nor the database
`ops`           ``/v1/cluster``, ``events``, ``processors``; probes, ``/metrics``, ``/docs``
`ui`            ``/ui``, the dashboard: its page, its sessions
==============  =======================================================================================

Nothing here owns jobs, schedules or decisions. What must hold: a refused request has written nothing; every refusal is
problem+json (RFC 9457) and names the field, what is wrong with it and what would be right; no input is a 500; every
request has a bound on its size, its time and its number, and no token or address can take the whole of a limited
resource (`hascheduler.api.http.limits`). An edit is one compare-and-set on the revision that it was made from, and
an edit that changes nothing is not written. An answer may be sent back as a request. A stored document never leaves as
it is: an answer has only what its response model names.
"""
