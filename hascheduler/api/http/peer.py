"""What a replica says of a request that it passes on to another one, its *peer*: whose it is, and of which batch.

The peer charges the request to the client's own address, and not to that of the replica, behind which many clients may
be. Anybody can send such headers: a client that chose its address could charge others, or escape its share of the
limits, and one that chose a batch could add jobs to another's. So they count only with a proof, an HMAC by a key that
the database gives to replicas alone.

Not guaranteed: against somebody who reads what replicas send to each other. He finds tokens there too.
"""

import hmac
from collections.abc import Sequence
from typing import NamedTuple

from starlette.types import Scope

BATCH_ID = "batch_id"
"""The key in ``scope["state"]`` of the id of the whole batch, for a request that has a part of it."""
_CLIENT = b"x-hascheduler-client"
_BATCH = b"x-hascheduler-batch"
_PROOF = b"x-hascheduler-proof"


class PassedOn(NamedTuple):
    """``client`` is an address; ``batch_id`` is that of the whole if the request has a part of a batch."""

    client: str
    batch_id: str | None = None


def peer_headers(key: bytes, scope: Scope) -> Sequence[tuple[bytes, bytes]]:
    """Return the headers by which a peer with the same key knows this of the request."""
    client = (scope.get("client") or ("",))[0].encode("latin-1", "replace")
    batch = (scope["state"].get(BATCH_ID) or "").encode()
    return (_CLIENT, client), (_BATCH, batch), (_PROOF, _proof(key, client, batch))


def passed_on_by_peer(scope: Scope, key: bytes) -> PassedOn | None:
    """Return what a peer says of the request; None if no peer passed it on."""
    said = {name: value for name, value in scope["headers"] if name in (_CLIENT, _BATCH, _PROOF)}
    client, batch, proof = said.get(_CLIENT, b""), said.get(_BATCH, b""), said.get(_PROOF)
    if proof is None or not hmac.compare_digest(proof, _proof(key, client, batch)):
        return None
    return PassedOn(client.decode("latin-1"), batch.decode("latin-1") or None)


def _proof(key: bytes, client: bytes, batch: bytes) -> bytes:
    return hmac.digest(key, client + b"\n" + batch, "sha256").hex().encode()
