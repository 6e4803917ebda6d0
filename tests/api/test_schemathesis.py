"""What the OpenAPI document promises, held against what is answered to requests that are made from it by chance.

In-process, in a world of memory where some things are; the seed is fixed, so that a failure comes again. Streams are
left out, as they end after an hour, and who waits for a job or for work waits but for a moment.
"""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case, CheckContext, Response
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hascheduler.api.access_door import Lock
from hascheduler.api.app import create_app
from hascheduler.model.documents import Collection, new_job_document
from hascheduler.model.token import digest_of
from tests.api.doubles import World
from tests.factories import make_job

_EXAMPLES_MAX = 25
_STREAMS = ["follow_events", "record"]
_THERE = {"definitions": "log", "lanes": "default", "tenants": "acme", "jobs": "job:1"}

SECRET = "the token that the settings hold"
world = World()
world.lock = Lock(demanded=True, admin_digest=digest_of(SECRET))
schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(world.services()))


def never_fails(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """503 is an answer, if it says when to come again."""
    if response.status_code != 503:
        not_a_server_error(context, response, case)


def refuses_what_is_wrong(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """413 is a refusal too."""
    if response.status_code != 413:
        negative_data_rejection(context, response, case)


def keeps_its_secrets(context: CheckContext, response: Response, case: Case[Any]) -> None:
    for told in (b"Traceback", b'File "', b"pymongo", b"MemoryConnection"):
        assert told not in response.content, f"{told!r} in an answer"


def says_when_to_come_again(context: CheckContext, response: Response, case: Case[Any]) -> None:
    if response.status_code in (429, 503):
        assert "retry-after" in response.headers


CHECKS = [
    never_fails,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    refuses_what_is_wrong,
    keeps_its_secrets,
    says_when_to_come_again,
]


def aimed(case: Case[Any]) -> Case:
    """At what is there, about every second time, and without waiting."""
    noun = case.path.split("/")[2] if case.path.count("/") > 1 else ""
    for name, value in case.path_parameters.items():
        if noun in _THERE and len(str(value)) % 2:
            case.path_parameters[name] = _THERE[noun]
    if case.query and "wait" in case.query:
        case.query["wait"] = "1ms"
    if isinstance(case.body, dict) and case.path == "/v1/work/fetch":
        case.body["wait"] = 0
    return case


@schema.exclude(operation_id=_STREAMS).parametrize()
@settings(
    max_examples=_EXAMPLES_MAX,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_api_keeps_what_its_document_promises(case: Case[Any]) -> None:
    world.database.replace(Collection.JOBS, new_job_document(make_job("job:1")))
    aimed(case).call_and_validate(headers={"Authorization": f"Bearer {SECRET}"}, checks=CHECKS)
