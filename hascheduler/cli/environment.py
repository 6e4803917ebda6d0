"""The variables ``HASCHEDULER_…`` of the command line: a check for unknown ones, and how to reach the replicas.

Secrets are never options: every user of the machine can read those.

A variable that nothing reads is refused: a misspelt setting would silently keep its default. The settings are
imported only if one of the variables may belong to them, because most commands need none.

Owner of ``--ca-file`` and ``--context``, which come before the command.
"""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import expected_name

if TYPE_CHECKING:
    from hascheduler.contexts import Access
_PREFIX = "HASCHEDULER_"
_LISTED = "the settings in `hascheduler serve --help`"
READ_ELSEWHERE = {
    "URL": "commands and `Scheduler.from_env()`: URL of the replica, `http://127.0.0.1:8080` by default",
    "TOKEN": "commands and `Scheduler.from_env()`: bearer token",
    "TOKEN_FILE": "commands and `Scheduler.from_env()`: file that holds the token",
    "CONTEXT": "commands and `Scheduler.from_env()`: name of the context to use, see `hascheduler context`",
    "CONFIG": "commands and `Scheduler.from_env()`: file of contexts, by default `~/.config/hascheduler/contexts.toml`",
    "CA_FILE": "commands and `Scheduler.from_env()`: PEM authorities to verify replicas over HTTPS",
    "CLIENT_CERT_FILE": "commands and `Scheduler.from_env()`: PEM client certificate, if replicas require one",
    "CLIENT_KEY_FILE": "commands and `Scheduler.from_env()`: PEM key of the client certificate",
    "WEBHOOK_ALLOW": "`hascheduler.handlers.webhook`: host names that it may call, separated by commas; `*.example.org`"
    " is a pattern",
    "WEBHOOK_ALLOW_PRIVATE": "`hascheduler.handlers.webhook`: private networks that it may call, such as"
    " `10.96.0.0/12`",
    "WEBHOOK_URL": "`hascheduler.handlers.webhook`: where payloads without a `url` go, as JSON",
    "WEBHOOK_BODY": "`hascheduler.handlers.webhook`: a `body_template` for them, such as"
    """ `{"text": ${payload.error|json}}`""",
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


_given: dict[str, str | None] = {"ca_file": None, "context": None}


def set_options(ca_file: str | None, context: str | None) -> None:
    """Set the file and the context that the command line names before the command; None leaves the choice."""
    _given.update(ca_file=ca_file, context=context)


def own_url() -> str | None:
    """Return the URL of the health port that the environment sets; None if it sets none."""
    port, host = (os.environ.get(f"{_PREFIX}HEALTH_{name}", "") for name in ("PORT", "HOST"))
    if not port.isdecimal() or not int(port):
        return None
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # nothing listens there
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def access(url: str | None = None, context: str | None = None) -> "Access":
    """Return how to reach the replicas, if the command has these options."""
    from hascheduler.contexts import find_access  # brings ssl, which no help needs

    return find_access(url, context or _given["context"], _given["ca_file"])
