"""The client and the database handle, with the options that everything in this room relies on.

Any BSON can be read: invalid UTF-8 is replaced, and dates beyond Python's years stay numbers. So one malformed document
never blocks the stream; the decoders of the model quarantine it with a reason instead.

On Python 3.11 the driver waits for its pools' locks by `wait_in_this_task`: a replica whose term ended while MongoDB
was stalled had an exchange cancelled twice, and never got a connection again.

`awaited` and `session_after` cover the few places where PyMongo's asynchronous client and Motor differ: Motor returns
cursors and change streams at once where PyMongo must be awaited, and the reverse for sessions.
"""

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pymongo.lock
from bson import Timestamp
from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.uri_parser import parse_uri
from pymongo.write_concern import WriteConcern

from hascheduler.errors import InvalidInput
from hascheduler.tls import PemFile, client_context

Client = AsyncMongoClient[dict[str, Any]]
Database = AsyncDatabase[dict[str, Any]]
"""The argument of every store. A Motor database has the same methods; `awaited` covers the differences."""

_REASON_LENGTH_MAX = 200
MAJORITY = WriteConcern(w="majority")
ONE = WriteConcern(w=1)
LOCAL_READ = ReadConcern("local")

CLIENT_OPTIONS: dict[str, Any] = {
    "appname": "hascheduler",
    "connectTimeoutMS": 2_000,
    "serverSelectionTimeoutMS": 2_000,
    # The driver gives up a silent primary after this and the time to connect, and searches for another: 5 s in all,
    # less than a lease. With the usual 10 s every caller would wait longer than a lease.
    "heartbeatFrequencyMS": 3_000,
    # The last resort for the stream, whose own limits are shorter; all other calls have limits of their own.
    "socketTimeoutMS": 20_000,
    "maxPoolSize": 50,
    "retryReads": True,
    "retryWrites": True,
}
"""Options of the clients of both drivers."""

_CODEC: CodecOptions[dict[str, Any]] = CodecOptions(
    unicode_decode_error_handler="replace", datetime_conversion=DatetimeConversion.DATETIME_AUTO
)


async def wait_in_this_task(waited: Awaitable[Any], timeout_s: float | None) -> Any:
    """Wait as `asyncio.wait_for` does from Python 3.12 on.

    Earlier versions wait in a task of their own, and leave it behind if they are cancelled twice. The wait that ends
    there is for a condition, which takes the condition's lock once more, and no task is left to release it.
    """
    async with asyncio.timeout(timeout_s):
        return await waited


if sys.version_info < (3, 12):
    pymongo.lock.wait_for = wait_in_this_task  # type: ignore[assignment,attr-defined]


def connect(
    uri: str, *, tls_ca_file: str = "", tls_cert_file: str = "", setting: str = "HASCHEDULER_MONGODB_URI"
) -> Client:
    """Return a client that connects with its first call; raise the errors of `require_uri` about the URI."""
    tls = tls_options(tls_ca_file, tls_cert_file)
    with _not_repeated(uri, setting):
        return AsyncMongoClient(uri, **CLIENT_OPTIONS, **tls)


def require_uri(uri: str, setting: str = "HASCHEDULER_MONGODB_URI") -> None:
    """Raise `InvalidInput` if ``uri`` is malformed, without repeating it; do not resolve one that DNS completes."""
    with _not_repeated(uri, setting):
        if not uri.startswith("mongodb+srv://"):
            parse_uri(uri)


@contextmanager
def _not_repeated(uri: str, setting: str) -> Iterator[None]:
    try:
        yield
    except (PyMongoError, ValueError, TypeError) as error:
        # The driver's error texts quote parts of the URI, at worst the password.
        reason = type(error).__name__ if "@" in uri else str(error)[:_REASON_LENGTH_MAX]
        raise InvalidInput(
            (setting,), f"not a MongoDB URI ({reason})", "mongodb://host:port/?replicaSet=name"
        ) from None


def tls_options(ca_file: str, cert_file: str) -> dict[str, Any]:
    """Return the driver's options for TLS, which it speaks if there is either file; ``cert_file`` holds its key too."""
    if not (ca_file or cert_file):
        return {}
    # Loaded only for the error, which names the wrong file and the reason: the driver reads the files itself.
    cert = PemFile("HASCHEDULER_MONGODB_TLS_CERT_FILE", cert_file)
    client_context(PemFile("HASCHEDULER_MONGODB_TLS_CA_FILE", ca_file), cert, cert)
    options: dict[str, Any] = {"tls": True}
    if ca_file:
        options["tlsCAFile"] = ca_file
    if cert_file:
        options["tlsCertificateKeyFile"] = cert_file
    return options


def open_database(client: Client, name: str) -> Database:
    """Return the handle for all stores: majority reads and writes unless a store overrides them.

    ``client`` may be Motor's.
    """
    return client.get_database(name, codec_options=_CODEC, read_concern=ReadConcern("majority"), write_concern=MAJORITY)


async def awaited(value: Any) -> Any:
    """Return ``value``, awaited if this driver requires that."""
    return await value if inspect.isawaitable(value) else value


@asynccontextmanager
async def session_after(database: Database, moment: Timestamp | None) -> AsyncIterator[Any]:
    """Open a causally consistent session whose majority reads see at least everything up to ``moment``."""
    async with await awaited(database.client.start_session(causal_consistency=True)) as session:
        if moment is not None:
            session.advance_operation_time(moment)
        yield session


@asynccontextmanager
async def transaction(database: Database) -> AsyncIterator[Any]:
    """Open a transaction that is aborted unless it is committed inside."""
    async with await awaited(database.client.start_session()) as session:
        begun = session.start_transaction(read_concern=ReadConcern("snapshot"), write_concern=MAJORITY)
        async with await awaited(begun):
            yield session
