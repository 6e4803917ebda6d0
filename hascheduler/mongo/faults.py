"""Where the driver's errors stop, and where every exchange gets its time limit.

And where lost cancellations are restored: the driver sends through ``asyncio.wait_for``, which in Python 3.11 drops a
cancellation that meets a finished send. A cancelled loop would go on with its next exchange.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pymongo
from bson.errors import BSONError
from pymongo.errors import InvalidOperation, OperationFailure, PyMongoError, WriteError

from hascheduler.errors import HistoryLost, InvalidInput, StoreUnavailable

EXCHANGE_LIMIT_S = 5.0
DUPLICATE_KEY = 11000

# ChangeStreamHistoryLost, ChangeStreamFatalError, CappedPositionLost, InvalidResumeToken, and the codes with which
# servers before 4.4 said that a resume token was not found.
_HISTORY_LOST = frozenset({286, 280, 136, 260, 40576, 40585, 40615, 50811})
# BadValue (too large to insert), Overflow (nested too deeply), DollarPrefixedFieldName, InvalidIdField,
# DottedFieldName, DocumentValidationFailure, and too large after an update.
_DOCUMENT_REFUSED = frozenset({2, 15, 52, 53, 57, 121, 10334, 17280, 17419, 17420})
_REFUSED_AS_COMMAND = _DOCUMENT_REFUSED - {2}
"""Many commands answer BadValue; only as the error of a write does it concern the document."""


@contextmanager
def faults(doing: str, limit_s: float = EXCHANGE_LIMIT_S) -> Iterator[None]:
    """One exchange with the database, ``doing`` something, that ends within ``limit_s``.

    Raises `StoreUnavailable`, `HistoryLost`, or `InvalidInput` where a value can't be stored. An error that is a
    normal outcome (a duplicate key) is caught inside by the caller that expects it.
    """
    with translated(doing), pymongo.timeout(limit_s):
        yield


@asynccontextmanager
async def local_faults(doing: str, limit_s: float = EXCHANGE_LIMIT_S) -> AsyncIterator[None]:
    """`faults` with a limit that the server is not given: for one slice of a cursor that may have any number of them.

    The limit of `faults` the driver sends with the cursor's first exchange, and the server counts what it works for all
    slices together against it: so a cursor of a great many documents would always end before its last slice.
    """
    with translated(doing):
        async with asyncio.timeout(limit_s):
            yield


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """`faults` without the time limit, for what has its own or exchanges nothing."""
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
    """Cancel ``exchange`` if need be, and take its outcome: no caller is left to get it."""
    while not exchange.done():
        # More than once: the driver may lose a cancellation.
        exchange.cancel()
        await asyncio.wait([exchange], timeout=0.1)
    if not exchange.cancelled():
        exchange.exception()  # marks it as retrieved


def refuses_document(code: int | None) -> bool:
    """Whether a write error with that code says that the document can't be stored, now or later."""
    return code in _DOCUMENT_REFUSED


def _translate(doing: str, error: PyMongoError) -> Exception:
    if not isinstance(error, OperationFailure):
        # Texts of these errors list hosts and topologies; the type says enough.
        if isinstance(error, InvalidOperation):
            return StoreUnavailable(f"{doing}: the client is closed")
        return StoreUnavailable(f"{doing}: {type(error).__name__}")
    if error.code in _HISTORY_LOST or error.has_error_label("NonResumableChangeStreamError"):
        return HistoryLost(f"{doing}: {described(error)}")
    if error.code in (_DOCUMENT_REFUSED if isinstance(error, WriteError) else _REFUSED_AS_COMMAND):
        return InvalidInput(("document",), f"can't be stored: {described(error)}")
    return StoreUnavailable(f"{doing}: {described(error)}")


def described(error: OperationFailure) -> str:
    """Return the name, the code and the words of the server's error."""
    details = error.details or {}
    return f"{details.get('codeName', type(error).__name__)} ({error.code}): {str(details.get('errmsg', ''))[:200]}"
