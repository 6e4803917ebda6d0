"""Where errors of the API server and of the way to it stop, and where every exchange gets its time limit."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from hascheduler.errors import StoreUnavailable
from hascheduler.kubernetes.access import ClusterAccess

# Shorter than the renew deadline: a leader must learn in time that it could not renew.
EXCHANGE_LIMIT_S = 3.0
_SAID_CHARACTERS_MAX = 200


@asynccontextmanager
async def faults(doing: str) -> AsyncIterator[None]:
    """An exchange, ``doing`` something, that ends within `EXCHANGE_LIMIT_S` or is `StoreUnavailable`."""
    try:
        async with asyncio.timeout(EXCHANGE_LIMIT_S):
            yield
    except (TimeoutError, httpx.TimeoutException) as error:
        raise StoreUnavailable(f"{doing}: the API server gave no answer in time") from error
    except httpx.ConnectError as error:
        raise StoreUnavailable(f"{doing}: no connection to the API server: {_short(error)}") from error
    except httpx.HTTPError as error:
        # Their texts may quote headers, and one of those is the token.
        raise StoreUnavailable(f"{doing}: no answer of the API server ({type(error).__name__})") from None


def token_unreadable(doing: str, access: ClusterAccess, error: Exception) -> StoreUnavailable:
    why = error.strerror if isinstance(error, OSError) else "no token"
    return StoreUnavailable(f"{doing}: {access.token}: {why}")


def no_lease(doing: str) -> StoreUnavailable:
    return StoreUnavailable(f"{doing}: the answer is no Lease; does an API server listen there?")


def refused(doing: str, access: ClusterAccess, status: int, body: Any, *, verb: str, lease: str) -> StoreUnavailable:
    """An answer that is neither success nor an expected outcome. What it says of later (``Retry-After``) is not kept:
    who asks once in a retry period is patient, and a leader that waits for longer has lost its lease."""
    said = f" ({_short(body['message'])})" if isinstance(body, Mapping) and body.get("message") else ""
    match status:
        case 401:
            why = f"does not know the token in {access.token}"
        case 403:
            what = "leases.coordination.k8s.io" + ("" if verb == "create" else f" {lease}")
            why = f"denies: the service account needs the right to {verb} {what} in namespace {access.namespace}"
        case 404:
            why = f"knows no namespace {access.namespace}, or no leases"
        case 429:
            why = "has too much to do"
        case _:
            why = f"answers {status}"
    return StoreUnavailable(f"{doing}: the API server {why}{said}")


def _short(said: object) -> str:
    return str(said)[:_SAID_CHARACTERS_MAX]
