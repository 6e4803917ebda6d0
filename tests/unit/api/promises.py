"""What any answer of the API is held against: the OpenAPI document, and what holds whatever it says."""

from typing import Any

from schemathesis import Case, CheckContext, Response
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hascheduler.schema.forms import NAME

SECRET = "the-token-that-the-settings-hold"
HEADERS = {"Authorization": f"Bearer {SECRET}"}
STREAMS = ["follow_events", "follow_cluster", "record"]
"""Operations whose answers last for up to an hour."""
_THERE = {"definitions": "log", "lanes": "default", "calendars": "business-days", "tenants": "acme", "jobs": "job:1"}


def aimed(case: Case[Any]) -> Case[Any]:
    """At what is there, about every second time, and without waiting. What is no name stays, to be refused."""
    noun = case.path.split("/")[2] if case.path.count("/") > 1 else ""
    for name, value in case.path_parameters.items():
        if noun in _THERE and len(str(value)) % 2 and NAME.match(str(value)):
            case.path_parameters[name] = _THERE[noun]
    if case.query and "wait" in case.query:
        case.query["wait"] = "1ms"
    if isinstance(case.body, dict) and case.path == "/v1/work/fetch":
        case.body["wait"] = 0
    return case


def never_fails(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """503 is an answer, as it says when to come again."""
    if response.status_code != 503:
        not_a_server_error(context, response, case)


def refuses_what_is_wrong(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """413 is a refusal too. A list or an object of nothing gets lost in a query, and what is left may be right."""
    is_whole = not any(_gets_lost(value) for value in (case.query or {}).values())
    if response.status_code != 413 and is_whole:
        negative_data_rejection(context, response, case)


def _gets_lost(value: Any) -> bool:
    """Whether no text of it is in the URL."""
    if not isinstance(value, (list, dict)):
        return False
    return all(
        inner in ("", None) or _gets_lost(inner) for inner in (value if isinstance(value, list) else value.values())
    )


def keeps_its_secrets(context: CheckContext, response: Response, case: Case[Any]) -> None:
    for told in (b"Traceback", b'File "', b"pymongo", b"MemoryConnection"):
        assert told not in response.content, f"{told!r} in an answer"


def says_when_to_come_again(context: CheckContext, response: Response, case: Case[Any]) -> None:
    if response.status_code in (429, 503):
        assert "retry-after" in response.headers


PROMISES = [
    never_fails,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    refuses_what_is_wrong,
    keeps_its_secrets,
    says_when_to_come_again,
]
