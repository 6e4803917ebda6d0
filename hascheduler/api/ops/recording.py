"""``/v1/cluster/recording``: the leader's inputs and decisions for a span of time, as lines of JSON."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import OperatorOfAll
from hascheduler.api.middleware.timeouts import RECORDING_S_MAX
from hascheduler.api.services import Services
from hascheduler.dispatch.recording import RecordingEnd, heading_line, step_line
from hascheduler.errors import Conflict
from hascheduler.ports import Recording
from hascheduler.schema.forms import span
from hascheduler.schema.noun import AS_REQUEST

MEDIA_TYPE = "application/x-ndjson"

router = APIRouter(prefix="/cluster", tags=["cluster"])


class RecordingQuery(BaseModel):
    for_: Annotated[int, span(100, RECORDING_S_MAX * 1_000, of_query=True)] = Field(
        default="30s",  # a number would be documented as it is, and be sent as seconds
        validate_default=True,
        alias="for",
        description=f"How long; at most {RECORDING_S_MAX // 60} minutes",
        examples=["30s"],
    )


@router.get(
    "/recording",
    response_class=StreamingResponse,
    responses={
        200: {"content": {MEDIA_TYPE: {}}, "description": "A recording for `hascheduler simulate`"},
        **problem_responses(409, 422, 429),
    },
)
async def record(
    query: Annotated[RecordingQuery, Query(), AS_REQUEST], services: Services, caller: OperatorOfAll, request: Request
) -> StreamingResponse:
    """Record the leader: a line with its policy, lines with all it knows, then a line for each of its steps."""
    caller.require_payloads()  # limits per key have values of payloads
    holding_of(request.scope).hold_open("recordings")  # until the answer has ended
    recording = services.view.record(query.for_)
    if recording is None:
        raise Conflict("only the leader can be recorded, and by a few at once; /v1/cluster says who leads")
    return _Closing(_lines(recording), media_type=MEDIA_TYPE)


class _Closing(StreamingResponse):
    """Records for as long as it streams."""

    body_iterator: AsyncGenerator[bytes, None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self.body_iterator):
            await super().__call__(scope, receive, send)


async def _lines(recording: Recording) -> AsyncGenerator[bytes, None]:
    heading, steps = recording
    yield orjson.dumps(heading_line(heading), option=orjson.OPT_APPEND_NEWLINE)
    async for step in steps:
        line = {"end": step.reason} if isinstance(step, RecordingEnd) else step_line(step)
        yield orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
