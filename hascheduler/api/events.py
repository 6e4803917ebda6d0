"""``/v1/events``: what happens to jobs, as it happens, at any replica."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from pydantic import AfterValidator, Field

from hascheduler.api.access import Caller, Viewer
from hascheduler.api.access_door import SETTINGS_TOKEN
from hascheduler.api.event_stream import MEDIA_TYPE, EventStream
from hascheduler.api.responses import refused
from hascheduler.api.services import ApiServices, Services
from hascheduler.api.texts import Name, Strict, TextOrEmpty, wrong
from hascheduler.model.event import POSITION_PATTERN, EventType, is_position
from hascheduler.model.repr_limits import quoted
from hascheduler.model.token import digest_of
from hascheduler.ports import EventFilter

router = APIRouter(tags=["events"])


def _event_id(text: str) -> str:
    if not is_position(text):
        raise wrong(f"{quoted(text)} is no id of an event", "one that was told, such as 1893456000.0000000007")
    return text


EventId = Annotated[str, AfterValidator(_event_id), Field(json_schema_extra={"pattern": POSITION_PATTERN})]


class EventQuery(Strict):
    type: list[Annotated[EventType, Field(strict=False)]] = Field(
        default=[], max_length=len(EventType), description="Only events of this type; again for more"
    )
    definition: Name | None = Field(default=None, description="Only of jobs of this type")
    schedule: Name | None = Field(default=None, description="Only of jobs that this schedule made")
    job: TextOrEmpty | None = Field(default=None, description="Only of this job")
    tenant: Name | None = Field(default=None, description="Only of this tenant's jobs")
    after: EventId | None = Field(
        default=None, description="Go on after the event with this id; the header Last-Event-ID comes first"
    )

    def filter(self, tenant: str | None) -> EventFilter:
        return EventFilter(frozenset(self.type), self.definition, self.schedule, self.job, tenant)


@router.get(
    "/events",
    status_code=HTTPStatus.OK,
    response_class=EventStream,
    responses={200: {"content": {MEDIA_TYPE: {}}, "description": "Server-sent events"}, **refused(422, 429)},
)
async def follow_events(
    query: Annotated[EventQuery, Query()],
    request: Request,
    services: Services,
    caller: Viewer,
    last_event_id: Annotated[EventId | None, Header(description="Where a client goes on that has been here")] = None,
) -> EventStream:
    """Follow what happens to jobs: `submitted`, `dispatched`, `started`, `returned` (it waits again, perhaps until
    `retry_at`), `reprioritized`, `cancel_requested`, `revived`, `succeeded`, `failed`, `cancelled`.

    Each event is told at least once to a client that comes back with the last `id` it got, to this replica or to
    another: ids are the same everywhere. Where that is too long ago there is a `reset` first: list the jobs again. Who
    reads too slowly is told so (`lagging`), and has to come back. A stream ends after an hour at most.
    """
    which = query.filter(caller.filter_of(query.tenant))
    return EventStream(
        services.events,
        services.pools.followers,
        last_event_id or query.after,
        which,
        lambda: _still_welcome(request, services, caller),
    )


def _still_welcome(request: Request, services: ApiServices, caller: Caller) -> bool:
    """Whether the token still stands; a replica that does not know at present believes what it knew."""
    if caller.id is None or caller.id == SETTINGS_TOKEN or not services.view.ready:
        return True
    secret = request.headers.get("authorization", "").partition(" ")[2].strip()
    token = services.view.token(digest_of(secret))
    return token is not None and not token.has_expired(services.clock.wall_ms())
