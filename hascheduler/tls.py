"""Certificates: files in, an `ssl.SSLContext` out. What is wrong with a file is one line that names it.

TLS 1.2 is the least; whom one connects to must have a certificate for its name, signed by somebody trusted.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

from hascheduler.errors import InvalidInput

_LEAST = ssl.TLSVersion.TLSv1_2
"""Debian leaves it to the configuration of OpenSSL, which anybody may have changed."""


@dataclass(frozen=True, slots=True)
class PemFile:
    """``name`` is the setting or option that named it; a ``path`` of "" is none."""

    name: str
    path: str

    def __bool__(self) -> bool:
        return bool(self.path)

    def demand_readable(self) -> None:
        try:
            Path(self.path).read_bytes()
        except OSError as error:
            raise self.refused(error.strerror or type(error).__name__, "a readable file") from None
        except ValueError:
            raise self.refused("is no path", "a readable file") from None

    def refused(self, problem: str, expected: str) -> InvalidInput:
        return InvalidInput((self.name,), f"{self.path}: {problem}", expected)


def server_context(cert: PemFile, key: PemFile, client_ca: PemFile) -> ssl.SSLContext:
    """For who listens; with ``client_ca``, only for clients with a certificate that was signed by it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = _LEAST
    _load_own(context, cert, key)
    if client_ca:
        _load_trusted(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(ca: PemFile, cert: PemFile, key: PemFile) -> ssl.SSLContext:
    """For who connects: trusts ``ca``, where there is none those that this machine trusts, and shows ``cert``."""
    if ca:
        # Not those of the machine as well: who names an authority means that one.
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
