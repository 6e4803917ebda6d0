"""The header ``Idempotency-Key``: a job is submitted, triggered or retried once, however often a request is repeated.

Keys of submits and triggers belong to a tenant, those of retries to the job that is revived, and they hold for a day.
The same body under a key is answered with the same job, another body is refused. If equal requests race, one makes
the job.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated

import orjson
from fastapi import Depends, Request

from hascheduler.api.routing.route_rules import IDEMPOTENCY_KEY
from hascheduler.errors import InvalidInput
from hascheduler.ports import RetryKey

KEY_LENGTH_MAX = 255
_DIGEST_LENGTH = 32
"""The length of a key's digest in a job, which may hold several: 128 bits."""
REPLAYED: Mapping[str, str] = {"Idempotency-Replayed": "true"}
_EXPECTED = f"one text of 1 to {KEY_LENGTH_MAX} printable ASCII characters"


def parameter(description: str) -> dict[str, list[dict[str, object]]]:
    """Return the header for ``openapi_extra``: of several such headers a FastAPI parameter would take the last."""
    header = {
        "name": IDEMPOTENCY_KEY,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", "minLength": 1, "maxLength": KEY_LENGTH_MAX, "pattern": "^[!-~]+$"},
        "example": "5f2c9a10-6d5e-4c9b-8a0e-2f0a4b1c7d3e",
    }
    return {"parameters": [header]}


PARAMETER = parameter("Of all requests with the same key and body, one creates the job; the others return it")


def request_hash(*asked: object) -> str:
    """Return a hash that is equal for requests that ask for the same.

    ``asked`` includes the kind of request: no other request may be taken for a submit.
    """
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()


def retry_key(key: str, *asked: object) -> RetryKey:
    return RetryKey(hashlib.sha256(key.encode()).hexdigest()[:_DIGEST_LENGTH], request_hash(*asked)[:_DIGEST_LENGTH])


async def key_of(request: Request) -> str | None:
    """Return the request's key, if it has one. Refuse the request if the key is not valid."""
    given = request.headers.getlist(IDEMPOTENCY_KEY)
    if not given:
        return None
    if len(given) > 1:
        raise _refused(f"is given {len(given)} times")
    return checked_key(given[0])


def checked_key(key: str) -> str:
    """Return ``key`` if it is valid, or refuse the request."""
    if not 1 <= len(key) <= KEY_LENGTH_MAX:
        raise _refused(f"{len(key)} characters")
    if not all("!" <= character <= "~" for character in key):
        raise _refused("contains a blank or a character that is not ASCII")
    return key


def other_body(key: str) -> str:
    """Return the detail of the refusal if a key is used for two different bodies."""
    return f"the idempotency key {key!r} was used for another request; use a new key"


def _refused(problem: str) -> InvalidInput:
    return InvalidInput((IDEMPOTENCY_KEY,), problem, _EXPECTED)


IdempotencyKey = Annotated[str | None, Depends(key_of)]
