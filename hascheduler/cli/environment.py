"""Refuses variables ``HASCHEDULER_…`` that nothing reads: a misspelt setting would leave its default in silence.

The settings are imported only where one of the variables may be theirs: most commands have none.
"""

import re
from collections.abc import Mapping

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import expected_name

_PREFIX = "HASCHEDULER_"
_LISTED = "the settings of `hascheduler serve --help`"
READ_ELSEWHERE = {
    "URL": "the command line: the replica to ask, `http://127.0.0.1:8080` by default",
    "TOKEN": "the command line: the bearer token",
    "TOKEN_FILE": "the command line: a file that holds the token",
    "CA_FILE": "the command line: PEM authorities of replicas that speak HTTPS",
    "CLIENT_CERT_FILE": "the command line: PEM client certificate, where replicas demand one",
    "CLIENT_KEY_FILE": "the command line: its PEM key",
    "WEBHOOK_ALLOW": "`processors.webhook`: the host names that it may call, with commas; `*.example.org` is a pattern",
    "WEBHOOK_ALLOW_PRIVATE": "`processors.webhook`: private networks that it may call, such as `10.96.0.0/12`",
    "COMMAND_ALLOW": "`processors.command`: the programs that it may run; without it nothing runs",
    "COMMAND_ENV": "`processors.command`: the variables that payloads may set, by default `TZ`, `LANG`, `LC_*`",
    "JOB_ID": "set by `processors.command` for the program: the job's id",
    "ATTEMPT": "set by `processors.command` for the program: the attempt's number, a fencing token",
    "NOMINAL_AT": "set by `processors.command` for the program: the nominal time of a fire",
    "SCHEDULE": "set by `processors.command` for the program: the schedule that made the job",
}
"""The variables that are no settings: without the prefix, by what reads or sets them."""
_OF_A_SERVICE = re.compile(
    r"([A-Z0-9_]{1,256}_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]{1,256})?|PORT_[0-9]{1,5}_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)",
    re.ASCII,
)


def require_known_variables(environment: Mapping[str, str]) -> None:
    """`InvalidInput` for the first variable with our prefix that no command, handler or setting knows."""
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
                (ours[rest],), "no such setting", expected if expected == _LISTED else _PREFIX + expected
            )


def _is_of_a_service(rest: str, value: str) -> bool:
    """Whether Kubernetes made it of a Service whose name begins as ours."""
    is_port = (rest == "PORT" or rest.endswith("_PORT")) and "://" in value
    return is_port or _OF_A_SERVICE.fullmatch(rest) is not None
