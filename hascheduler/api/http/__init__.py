"""From the socket to a request: the server, its connections and their limits, strict JSON, problem+json.

This room knows no route, token or store.
"""
