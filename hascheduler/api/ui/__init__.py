"""The dashboard at ``/ui``: its page and assets, its sessions, and the stream that keeps open pages up to date.

::

    browser ── GET /ui, /ui/<digest>/app.js … ──► pages     static files of the package, nothing of other hosts
            ── POST /ui/session ────────────────► sessions  a token becomes a cookie that ends
            ── GET /v1/cluster/live ────────────► live      one picture a second, made once for all pages
            ── GET, POST … /v1/… ───────────────► the API   as any client uses it: the page has no routes of its own

What must hold: a page can do nothing that its caller could not do through the API; its policy lets it load from and
call only this origin; an open page costs the replica no cursor of the database. With the setting UI false, all of
``/ui`` is 404.
"""
