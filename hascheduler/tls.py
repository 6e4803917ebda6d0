"""Certificates: files in, an `ssl.SSLContext` out. An error in a file is one line that names it.

TLS 1.2 is the minimum; a server must show a certificate for its name, signed by a trusted authority.

A server uses new files from the next handshake on (`ServedCertificates`), so that no connection ends when a certificate
is replaced. A client reads the authorities at its start. To change those, let the file hold the old and the new one,
restart the processes one after the other, and only then sign with the new one.
"""

import asyncio
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from hascheduler.errors import InvalidInput

_CHECK_EVERY_S = 5.0
_LEAST = ssl.TLSVersion.TLSv1_2
"""Debian leaves it to the configuration of OpenSSL, which may have been changed."""


@dataclass(frozen=True, slots=True)
class PemFile:
    """A file with certificates or a key; ``name`` is the setting or option that names it; ``path`` "" means no file."""

    name: str
    path: str

    def __bool__(self) -> bool:
        return bool(self.path)

    @property
    def mark(self) -> tuple[int, ...]:
        """Return a value that changes with the file, links followed; () if there is none."""
        try:
            found = os.stat(self.path)
        except (OSError, ValueError):
            return ()
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size

    def require_readable(self) -> None:
        try:
            Path(self.path).read_bytes()
        except OSError as error:
            raise self.refused(error.strerror or type(error).__name__, "a readable file") from None
        except ValueError:
            raise self.refused("is not a path", "a readable file") from None

    def refused(self, problem: str, expected: str) -> InvalidInput:
        return InvalidInput((self.name,), f"{self.path}: {problem}", expected)


class ServedCertificates:
    """Owner of a server's ``context``; `renew` brings it up to date with its files.

    Both its creation and `renew` raise `InvalidInput` if a file can't be used, and `renew` then changes nothing.
    """

    def __init__(self, cert: PemFile, key: PemFile, client_ca: PemFile) -> None:
        self._files = (cert, key, client_ca)
        self._marks = self._seen()
        self.context = server_context(cert, key, client_ca)

    def renew(self) -> bool:
        """Load the files, and return True if they changed.

        Connections go on with their old certificates. Authorities of clients are added and not removed: for that the
        process must restart.
        """
        marks = self._seen()
        if marks == self._marks:
            return False
        cert, key, client_ca = self._files
        # In a new context first: if the certificate and the key do not match, one of them would already be in use.
        server_context(cert, key, client_ca)
        _load_own(self.context, cert, key)
        if client_ca:
            _load_trusted(self.context, client_ca)
        self._marks = marks
        return True

    async def keep_fresh(self, every_s: float = _CHECK_EVERY_S) -> None:
        """Load files that have changed, until cancelled.

        Unusable files are logged once, and tried again when they have changed.
        """
        import structlog  # noqa: PLC0415  # for servers: the SDK and the command line alone have none

        log = structlog.get_logger(__name__)
        refused: tuple[tuple[int, ...], ...] | None = None
        while True:
            await asyncio.sleep(every_s)
            marks = self._seen()
            if marks == refused:
                continue
            try:
                if self.renew():
                    log.info("certificates_renewed")
                refused = None
            except InvalidInput as error:
                refused = marks
                log.error("certificates_renewal_failed", error=str(error))

    def _seen(self) -> tuple[tuple[int, ...], ...]:
        return tuple(file.mark for file in self._files)


def server_context(cert: PemFile, key: PemFile, client_ca: PemFile) -> ssl.SSLContext:
    """Return a context for servers; with ``client_ca``, clients need a certificate signed by it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = _LEAST
    _load_own(context, cert, key)
    if client_ca:
        _load_trusted(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(ca: PemFile, cert: PemFile, key: PemFile) -> ssl.SSLContext:
    """Return a context for clients, which trusts ``ca``, or else this machine's authorities, and shows ``cert``."""
    if ca:
        # Not the machine's as well: naming an authority means that one alone.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _load_trusted(context, ca)
    else:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.minimum_version = _LEAST
    if cert:
        _load_own(context, cert, key)
    return context


def _load_own(context: ssl.SSLContext, cert: PemFile, key: PemFile) -> None:
    cert.require_readable()
    key.require_readable()
    try:
        # Without a password OpenSSL would ask the terminal for one.
        context.load_cert_chain(cert.path, key.path, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise key.refused(f"is not the key of {cert.path}", "the key of that certificate") from None
        # The error does not name the bad file, so the certificate is read alone.
        if _holds_certificate(cert):
            raise key.refused("holds no readable key", "a PEM file with a key, not encrypted") from None
        raise cert.refused("holds no readable certificate", "a PEM file with a certificate") from None


def _load_trusted(context: ssl.SSLContext, ca: PemFile) -> None:
    ca.require_readable()
    try:
        context.load_verify_locations(ca.path)
    except ssl.SSLError:
        raise ca.refused("holds no readable certificate", "a PEM file with certificates") from None


def _holds_certificate(file: PemFile) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file.path)
    except ssl.SSLError:
        return False
    return True
