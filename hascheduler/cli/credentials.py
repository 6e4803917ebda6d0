"""The credentials that commands present to a replica, and the authorities that they trust.

``HASCHEDULER_TOKEN`` (or a file, ``HASCHEDULER_TOKEN_FILE``) is the token. ``--ca-file`` and ``HASCHEDULER_CA_FILE``
name the authorities of replicas that speak HTTPS, ``HASCHEDULER_CLIENT_CERT_FILE`` and ``HASCHEDULER_CLIENT_KEY_FILE``
the client certificate for those that demand one. Secrets are never options: every user of the machine can read those.

Owner of ``--ca-file``, which comes before the command.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hascheduler.errors import InvalidInput

if TYPE_CHECKING:
    import ssl  # commands that ask no replica do without

_TOKEN = "HASCHEDULER_TOKEN"  # noqa: S105  # the name of a variable
_CA_FILE = "HASCHEDULER_CA_FILE"
_CERT_FILE = "HASCHEDULER_CLIENT_CERT_FILE"
_KEY_FILE = "HASCHEDULER_CLIENT_KEY_FILE"

_given: dict[str, str | None] = {"ca_file": None}


def set_ca_file(ca_file: str | None) -> None:
    """What the command line says; None leaves it to the environment."""
    _given["ca_file"] = ca_file


def auth_headers() -> dict[str, str]:
    """With the token, where there is one."""
    found = token()
    return {} if found is None else {"Authorization": f"Bearer {found}"}


def ssl_context() -> "ssl.SSLContext | None":
    """None where nothing but the authorities of this machine is to be trusted."""
    ca_file = _given["ca_file"] or os.environ.get(_CA_FILE, "")
    cert_file, key_file = os.environ.get(_CERT_FILE, ""), os.environ.get(_KEY_FILE, "")
    if bool(cert_file) != bool(key_file):
        raise InvalidInput((_CERT_FILE,), f"and {_KEY_FILE} go together", "both, or none")
    if not ca_file and not cert_file:
        return None
    from hascheduler.tls import PemFile, client_context  # brings structlog, which few commands need

    ca = PemFile("--ca-file" if _given["ca_file"] else _CA_FILE, ca_file)
    return client_context(ca, PemFile(_CERT_FILE, cert_file), PemFile(_KEY_FILE, key_file))


def token() -> str | None:
    """None where there is none."""
    name, text = _TOKEN, os.environ.get(_TOKEN, "")
    path = os.environ.get(f"{_TOKEN}_FILE", "")
    if path and not text:
        name = f"{_TOKEN}_FILE"
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is no text"
            raise InvalidInput((name,), f"{path}: {reason}", "a readable file") from None
    text = text.strip()
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidInput((name,), "holds no token", "hsk_… and nothing else")
    return text or None
