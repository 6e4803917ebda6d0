"""Translate the driver's errors, and give every exchange a time limit.

Lost cancellations are restored here, too: the driver sends through ``asyncio.wait_for``, which in Python 3.11 drops a
cancellation that coincides with a finished send. A cancelled loop would go on with its next exchange.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pymongo
from bson.errors import BSONError
from pymongo.errors import InvalidOperation, OperationFailure, PyMongoError, WriteError

from hascheduler.errors import HistoryLost, InvalidInput, StoreOverloaded, StoreUnavailable

EXCHANGE_LIMIT_S = 5.0
DUPLICATE_KEY = 11000

# ChangeStreamHistoryLost, ChangeStreamFatalError, CappedPositionLost, InvalidResumeToken, and the codes of servers
# before 4.4 for a resume token that was not found.
_HISTORY_LOST = frozenset({286, 280, 136, 260, 40576, 40585, 40615, 50811})
# BadValue (too large to insert), Overflow (nested too deeply), DollarPrefixedFieldName, InvalidIdField,
# DottedFieldName, DocumentValidationFailure, and too large after an update.
_DOCUMENT_REFUSED = frozenset({2, 15, 52, 53, 57, 121, 10334, 17280, 17419, 17420})
_REFUSED_AS_COMMAND = _DOCUMENT_REFUSED - {2}
"""Many commands answer BadValue; it concerns the document only as the error of a write."""
# The label that MongoDB 8.2 and later, and the driver, give to what was refused for load. The driver has already
# repeated it, with backoff, if it also has the label RetryableError.
_OVERLOADED_LABEL = "SystemOverloadedError"
# IngressRequestRateLimitExceeded; of TooManyOpenTransactions, which is new in 9.0, only the name is certain.
_OVERLOADED_CODE, _OVERLOADED_NAME = 462, "TooManyOpenTransactions"


@contextmanager
def faults(doing: str, limit_s: float = EXCHANGE_LIMIT_S) -> Iterator[None]:
    """Bound one exchange with the database, ``doing`` something, by ``limit_s``.

    Raise `StoreUnavailable`, `HistoryLost`, or `InvalidInput` if a value can't be stored. The caller catches an error
    that is a normal outcome (a duplicate key) inside.
    """
    with translated(doing), pymongo.timeout(limit_s):
        yield


@asynccontextmanager
async def local_faults(doing: str, limit_s: float = EXCHANGE_LIMIT_S) -> AsyncIterator[None]:
    """Apply `faults` with a limit that is not sent to the server: for one slice of a cursor with any number of slices.

    The driver sends the limit of `faults` with the cursor's first exchange, and the server counts its work for all
    slices against it, so a cursor over a great many documents would always end before its last slice.
    """
    with translated(doing):
        async with asyncio.timeout(limit_s):
            yield


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Apply `faults` without the time limit, for code that has its own or exchanges nothing."""
    task = asyncio.current_task()
    cancellations = task.cancelling() if task else 0
    try:
        yield
    except PyMongoError as error:
        raise _translate(doing, error) from error
    except TimeoutError as error:
        raise StoreUnavailable(f"{doing}: no answer in time") from error
    except (BSONError, OverflowError, UnicodeEncodeError, RecursionError) as error:
        problem = f"can't be stored: {str(error)[:200]}"
        raise InvalidInput(("document",), problem, "JSON with 64-bit integers") from error
    finally:
        if task and task.cancelling() > cancellations:
            raise asyncio.CancelledError


async def end_exchange(exchange: asyncio.Task[Any]) -> None:
    """Cancel ``exchange`` if need be, and take its outcome, as no caller is left to take it."""
    while not exchange.done():
        # More than once: the driver may lose a cancellation.
        exchange.cancel()
        await asyncio.wait([exchange], timeout=0.1)
    if not exchange.cancelled():
        exchange.exception()  # marks it as retrieved


def refuses_document(code: int | None) -> bool:
    """Return True if a write error with that code means that the document can't be stored, now or later."""
    return code in _DOCUMENT_REFUSED


def _translate(doing: str, error: PyMongoError) -> Exception:
    if _is_overload(error):
        reason = described(error) if isinstance(error, OperationFailure) else type(error).__name__
        return StoreOverloaded(f"{doing}: MongoDB is overloaded: {reason}")
    if not isinstance(error, OperationFailure):
        # Texts of these errors list hosts and topologies; the type is enough.
        if isinstance(error, InvalidOperation):
            return StoreUnavailable(f"{doing}: the client is closed")
        return StoreUnavailable(f"{doing}: {type(error).__name__}")
    if error.code in _HISTORY_LOST or error.has_error_label("NonResumableChangeStreamError"):
        return HistoryLost(f"{doing}: {described(error)}")
    if error.code in (_DOCUMENT_REFUSED if isinstance(error, WriteError) else _REFUSED_AS_COMMAND):
        return InvalidInput(("document",), f"can't be stored: {described(error)}")
    return StoreUnavailable(f"{doing}: {described(error)}")


def _is_overload(error: PyMongoError) -> bool:
    if error.has_error_label(_OVERLOADED_LABEL):
        return True
    if not isinstance(error, OperationFailure):
        return False
    return error.code == _OVERLOADED_CODE or (error.details or {}).get("codeName") == _OVERLOADED_NAME


def described(error: OperationFailure) -> str:
    """Return the name, the code and the text of the server's error."""
    details = error.details or {}
    return f"{details.get('codeName', type(error).__name__)} ({error.code}): {str(details.get('errmsg', ''))[:200]}"
