"""The variables ``HASCHEDULER_…`` of the command line: credentials for replicas, and a check for unknown variables.

``HASCHEDULER_TOKEN`` (or a file, ``HASCHEDULER_TOKEN_FILE``) is the token. ``--ca-file`` and ``HASCHEDULER_CA_FILE``
name the authorities of replicas that speak HTTPS, ``HASCHEDULER_CLIENT_CERT_FILE`` and ``HASCHEDULER_CLIENT_KEY_FILE``
the client certificate for those that demand one. Secrets are never options: every user of the machine can read those.

A variable that nothing reads is refused: a misspelt setting would silently keep its default. The settings are
imported only if one of the variables may belong to them, because most commands need none.

Owner of ``--ca-file``, which comes before the command.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hascheduler.cli.options import DEFAULT_URL
from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import expected_name

if TYPE_CHECKING:
    import ssl  # commands that ask no replica do not need it


_PREFIX = "HASCHEDULER_"
_LISTED = "the settings in `hascheduler serve --help`"
READ_ELSEWHERE = {
    "URL": "the command line: URL of the replica, `http://127.0.0.1:8080` by default",
    "TOKEN": "the command line: bearer token",
    "TOKEN_FILE": "the command line: file that holds the token",
    "CA_FILE": "the command line: PEM authorities to verify replicas over HTTPS",
    "CLIENT_CERT_FILE": "the command line: PEM client certificate, if replicas require one",
    "CLIENT_KEY_FILE": "the command line: PEM key of the client certificate",
    "WEBHOOK_ALLOW": "`hascheduler.handlers.webhook`: host names that it may call, separated by commas; `*.example.org`"
    " is a pattern",
    "WEBHOOK_ALLOW_PRIVATE": "`hascheduler.handlers.webhook`: private networks that it may call, such as"
    " `10.96.0.0/12`",
    "COMMAND_ALLOW": "`hascheduler.handlers.command`: programs that it may run; none by default",
    "COMMAND_ENV": "`hascheduler.handlers.command`: variables that payloads may set, by default `TZ`, `LANG`, `LC_*`",
    "JOB_ID": "set by `hascheduler.handlers.command` for the program: id of the job",
    "ATTEMPT": "set by `hascheduler.handlers.command` for the program: number of the attempt, a fencing token",
    "NOMINAL_AT": "set by `hascheduler.handlers.command` for the program: nominal time of the fire",
    "SCHEDULE": "set by `hascheduler.handlers.command` for the program: schedule of the job",
}
"""The variables that are not settings: without the prefix, with what reads or sets them."""
_OF_A_SERVICE = re.compile(
    r"([A-Z0-9_]{1,256}_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]{1,256})?|PORT_[0-9]{1,5}_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)",
    re.ASCII,
)


def require_known_variables(environment: Mapping[str, str]) -> None:
    """Raise `InvalidInput` for the first variable with our prefix that no command, handler or setting knows."""
    ours = {name.upper().removeprefix(_PREFIX): name for name in environment if name.upper().startswith(_PREFIX)}
    unknown = [
        rest
        for rest, name in ours.items()
        if rest not in READ_ELSEWHERE and not _is_of_a_service(rest, environment[name])
    ]
    if not unknown:
        return
    from hascheduler.settings import variables  # see above

    known = [*(name.removeprefix(_PREFIX) for name in variables()), *READ_ELSEWHERE]
    for rest in sorted(unknown):
        if rest not in known:
            expected = expected_name(rest, known, _LISTED)
            raise InvalidInput(
                (ours[rest],), "unknown setting", expected if expected == _LISTED else _PREFIX + expected
            )


def _is_of_a_service(rest: str, value: str) -> bool:
    """Return True if Kubernetes made the variable for a Service whose name begins like ours."""
    is_port = (rest == "PORT" or rest.endswith("_PORT")) and "://" in value
    return is_port or _OF_A_SERVICE.fullmatch(rest) is not None


_TOKEN = "HASCHEDULER_TOKEN"  # noqa: S105  # the name of a variable
_CA_FILE = "HASCHEDULER_CA_FILE"
_CERT_FILE = "HASCHEDULER_CLIENT_CERT_FILE"
_KEY_FILE = "HASCHEDULER_CLIENT_KEY_FILE"

_given: dict[str, str | None] = {"ca_file": None}


def set_ca_file(ca_file: str | None) -> None:
    """Set the file that the command line names; None leaves the choice to the environment."""
    _given["ca_file"] = ca_file


def own_url() -> str:
    """Return the URL of the health port that the environment sets, or else that of the replica to ask."""
    port, host = (os.environ.get(f"{_PREFIX}HEALTH_{name}", "") for name in ("PORT", "HOST"))
    if not port.isdecimal() or not int(port):
        return os.environ.get(f"{_PREFIX}URL") or DEFAULT_URL
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # nothing listens there
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def auth_headers() -> dict[str, str]:
    """Return the headers with the token, or none if there is no token."""
    found = token()
    return {} if found is None else {"Authorization": f"Bearer {found}"}


def ssl_context() -> "ssl.SSLContext | None":
    """Return the context for HTTPS; None if only the authorities of this machine are trusted."""
    ca_file = _given["ca_file"] or os.environ.get(_CA_FILE, "")
    cert_file, key_file = os.environ.get(_CERT_FILE, ""), os.environ.get(_KEY_FILE, "")
    if bool(cert_file) != bool(key_file):
        raise InvalidInput((_CERT_FILE,), f"and {_KEY_FILE} must be set together", "both, or none")
    if not ca_file and not cert_file:
        return None
    from hascheduler.tls import PemFile, client_context  # brings structlog, which few commands need

    ca = PemFile("--ca-file" if _given["ca_file"] else _CA_FILE, ca_file)
    return client_context(ca, PemFile(_CERT_FILE, cert_file), PemFile(_KEY_FILE, key_file))


def token() -> str | None:
    """Return the token; None if there is none."""
    name, text = _TOKEN, os.environ.get(_TOKEN, "")
    path = os.environ.get(f"{_TOKEN}_FILE", "")
    if path and not text:
        name = f"{_TOKEN}_FILE"
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not text"
            raise InvalidInput((name,), f"{path}: {reason}", "a readable file") from None
    text = text.strip()
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidInput((name,), "contains no token", "only the token, hsk_…")
    return text or None
