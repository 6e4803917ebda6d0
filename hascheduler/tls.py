"""Certificates: files in, an `ssl.SSLContext` out. What is wrong with a file is one line that names it.

TLS 1.2 is the least; a server must show a certificate for its name, signed by a trusted authority.

A server takes up new files with the next handshake (`ServedCertificates`): a certificate ends after a year or a month,
and no connection has to. A client reads the authorities at its start; to change those, let the file hold the old
and the new one, restart one after the other, and sign with the new one then.
"""

import asyncio
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

import structlog

from hascheduler.errors import InvalidInput

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 5.0
_LEAST = ssl.TLSVersion.TLSv1_2
"""Debian leaves it to the configuration of OpenSSL, which may have been changed."""


@dataclass(frozen=True, slots=True)
class PemFile:
    """``name`` is the setting or option that named it; a ``path`` of "" is none."""

    name: str
    path: str

    def __bool__(self) -> bool:
        return bool(self.path)

    @property
    def mark(self) -> tuple[int, ...]:
        """Another one whenever the file is another, wherever links lead by then; () while there is none."""
        try:
            found = os.stat(self.path)
        except (OSError, ValueError):
            return ()
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size

    def demand_readable(self) -> None:
        try:
            Path(self.path).read_bytes()
        except OSError as error:
            raise self.refused(error.strerror or type(error).__name__, "a readable file") from None
        except ValueError:
            raise self.refused("is no path", "a readable file") from None

    def refused(self, problem: str, expected: str) -> InvalidInput:
        return InvalidInput((self.name,), f"{self.path}: {problem}", expected)


class ServedCertificates:
    """Owner of a server's ``context``; `renew` brings it up to date with its files.

    `InvalidInput` where a file can't be used, from the start as from `renew`, which leaves all as it was then.
    """

    def __init__(self, cert: PemFile, key: PemFile, client_ca: PemFile) -> None:
        self._files = (cert, key, client_ca)
        self._marks = self._seen()
        self.context = server_context(cert, key, client_ca)

    def renew(self) -> bool:
        """Whether there was something new. Connections go on with what they began with, and authorities of clients are
        added and not taken away: for that the process has to start again."""
        marks = self._seen()
        if marks == self._marks:
            return False
        cert, key, client_ca = self._files
        # Aside first: of a certificate and a key that do not fit, one would be in force.
        server_context(cert, key, client_ca)
        _load_own(self.context, cert, key)
        if client_ca:
            _load_trusted(self.context, client_ca)
        self._marks = marks
        return True

    async def keep_fresh(self, every_s: float = _LOOK_EVERY_S) -> None:
        """Load files that have changed, until cancelled. It logs once that files can't be used, and tries them again
        when they have changed."""
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
    """For servers; with ``client_ca``, only for clients with a certificate that was signed by it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = _LEAST
    _load_own(context, cert, key)
    if client_ca:
        _load_trusted(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(ca: PemFile, cert: PemFile, key: PemFile) -> ssl.SSLContext:
    """For clients: trusts ``ca``, where there is none those that this machine trusts, and shows ``cert``."""
    if ca:
        # Not those of the machine as well: naming an authority means that one.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _load_trusted(context, ca)
    else:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.minimum_version = _LEAST
    if cert:
        _load_own(context, cert, key)
    return context


def _load_own(context: ssl.SSLContext, cert: PemFile, key: PemFile) -> None:
    cert.demand_readable()
    key.demand_readable()
    try:
        # Without a password the driver would ask the terminal for one.
        context.load_cert_chain(cert.path, key.path, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise key.refused(f"is not the key of {cert.path}", "the key that goes with it") from None
        # Of the two files the driver does not say which: the certificate alone is read without a key.
        if _holds_certificate(cert):
            raise key.refused("no key can be read from it", "a PEM file with a key, not encrypted") from None
        raise cert.refused("no certificate can be read from it", "a PEM file with a certificate") from None


def _load_trusted(context: ssl.SSLContext, ca: PemFile) -> None:
    ca.demand_readable()
    try:
        context.load_verify_locations(ca.path)
    except ssl.SSLError:
        raise ca.refused("no certificate can be read from it", "a PEM file with certificates") from None


def _holds_certificate(file: PemFile) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file.path)
    except ssl.SSLError:
        return False
    return True
