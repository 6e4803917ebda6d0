"""From the socket to a request: the server, its connections and their limits, strict JSON, problem+json.

Nothing in this room knows a route, a token or a store.
"""
