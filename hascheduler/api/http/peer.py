"""What a replica says of a request that it passes on to another one, its *peer*: whose it is.

The peer charges the request to the client's own address, and not to that of the replica, behind which many clients may
be. Anybody can send such headers: a client that chose its address could charge others, or escape its share of the
pools. So they count only with a proof, an HMAC by a key that the database gives to replicas alone.

Not guaranteed: against somebody who reads what replicas send to each other. He finds tokens there too.
"""

import hmac
from collections.abc import Sequence
from typing import NamedTuple

from starlette.types import Scope

_CLIENT = b"x-hascheduler-client"
_PROOF = b"x-hascheduler-proof"


class PassedOn(NamedTuple):
    client: str
    """The address."""


def peer_headers(key: bytes, passed_on: PassedOn) -> Sequence[tuple[bytes, bytes]]:
    """Return the headers by which a peer with the same key knows it."""
    client = passed_on.client.encode("latin-1", "replace")
    return (_CLIENT, client), (_PROOF, _proof(key, client))


def passed_on_by_peer(scope: Scope, key: bytes) -> PassedOn | None:
    """Return what a peer says of the request; None if no peer passed it on."""
    said = {name: value for name, value in scope["headers"] if name in (_CLIENT, _PROOF)}
    client, proof = said.get(_CLIENT, b""), said.get(_PROOF)
    if proof is None or not hmac.compare_digest(proof, _proof(key, client)):
        return None
    return PassedOn(client.decode("latin-1"))


def _proof(key: bytes, client: bytes) -> bytes:
    return hmac.digest(key, client, "sha256").hex().encode()
