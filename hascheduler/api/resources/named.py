"""``/v1/definitions``, ``lanes``, ``calendars``, ``tenants``: list, get, put, patch, delete, made of a row for each.

A row holds what differs: the class, its store, who may write it, what happens to its users. The rest is shared:
revisions as tags, changes as compare-and-set, unreadable documents, the view of a token of one tenant.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Generic, TypeVar

from fastapi import APIRouter, Body, Response

from hascheduler.api.http.problems import NOT_MODIFIED, problem_responses
from hascheduler.api.middleware.auth import AdminOfAll, OperatorOfAll, Viewer
from hascheduler.api.routing import revisions
from hascheduler.api.routing.queries import CheckedPathName, Page, Paging, PathName, page
from hascheduler.api.routing.revisions import TAGGED, IfBoth, IfMatch, IfNoneMatch, merge_patch
from hascheduler.api.routing.route_rules import JsonRoute, read_body, readable
from hascheduler.api.routing.warnings import warn_of_names
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, InvalidInput, NotFound
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.ports import ResourceStore, StoredDocument
from hascheduler.schema.calendar import Calendar, CalendarBody
from hascheduler.schema.definition import Definition, DefinitionBody
from hascheduler.schema.lane import Lane, LaneBody
from hascheduler.schema.noun import AS_REQUEST, N, Part, answer_of, named, read_document
from hascheduler.schema.tenant import Tenant, TenantBody
from hascheduler.triggers import calendars_of

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Named(Generic[N]):
    """A row. ``writer`` is the caller who may write, ``patch`` the example of a PATCH.

    ``left`` and ``followed`` document, for OpenAPI, what happens to the users of the noun after a DELETE and after a
    PUT. ``busy`` raises `Conflict` if it may not be deleted now. If ``own``, a token of one tenant sees only the noun
    of that name.
    """

    noun: type[N]
    body: type[Part]
    writer: Any
    store: Callable[[ApiServices], ResourceStore[N]]
    patch: Mapping[str, Any]
    left: str
    followed: str = ""
    own: bool = False
    busy: Callable[[str, ApiServices], Awaitable[None]] | None = None

    @property
    def kind(self) -> str:
        return self.noun.__name__.lower()

    def read(self, document: StoredDocument) -> N:
        return read_document(self.noun, document["_id"], document)

    def readable(self, document: StoredDocument) -> N:
        """Return the stored noun, or raise `UnreadableDocument`."""
        with readable(self.kind, document["_id"]):
            return self.read(document)

    def read_or_none(self, document: StoredDocument | None) -> N | None:
        try:
            return None if document is None else self.read(document)
        except InvalidInput:
            return None


def named_routes(row: Named[N]) -> APIRouter:
    """Return the five routes of ``row``."""
    kind = row.kind
    writer, body_type, page_type = row.writer, Annotated[row.body, AS_REQUEST], Page[row.noun]  # type: ignore[name-defined]
    merge = f"Any part of a {kind}, as a JSON merge patch (RFC 7396): objects merge, null resets to the default"
    patch_type = Annotated[dict[str, Any], Body(description=merge, examples=[dict(row.patch)])]
    router = APIRouter(prefix=f"/{kind}s", tags=[f"{kind}s"], route_class=JsonRoute)

    def route(method: str, text: str, *refusals: int, path: str = "/{name}", **how: Any) -> Callable[[F], F]:
        name = f"{method.lower()}_{kind}" if path else f"list_{kind}s"
        how = {"response_model": row.noun, **how}
        answers = how.pop("responses", {}) | problem_responses(*refusals)
        return router.api_route(path, methods=[method], name=name, description=text, responses=answers, **how)

    @route(
        "PUT",
        f"Create (201) or replace (200) a {kind}; with If-Match only replace, with If-None-Match: * only create."
        f"{row.followed}",
        409, 412, 413, 422,
        responses={200: TAGGED, 201: {"model": row.noun, "description": "Created", **TAGGED}},
    )  # fmt: skip
    async def put(
        name: CheckedPathName,
        body: body_type,  # type: ignore[valid-type]
        services: Services,
        caller: writer,  # type: ignore[valid-type]
        wanted: IfBoth,
    ) -> Response:
        store = row.store(services)

        async def attempt() -> Response | None:
            stored = await store.get(name)
            wanted.demand(kind, name, stored)
            noun = _over(row, row.read_or_none(stored), name, body)
            return _warned(await _written(row, store, stored, noun), noun, services)

        return await revisions.until_done(kind, name, attempt)

    seen = "; a token of one tenant sees only that one" if row.own else ""

    @route("GET", f"List {kind}s by name, a page at a time{seen}.", 422, path="", response_model=page_type)
    async def list_page(paging: Paging, services: Services, caller: Viewer) -> Response:
        store = row.store(services)
        if row.own and caller.only is not None:
            one = await store.get(caller.only) if paging.after is None or caller.only > paging.after else None
            found = [] if one is None else [one]
        else:
            found = list(await store.list(paging.after, paging.limit + 1))
        return await page(found, paging.limit, None, row.read)

    @route("GET", f"Get a {kind}.", 404, 409, 422, responses={200: TAGGED, **NOT_MODIFIED})
    async def get(name: PathName, services: Services, caller: Viewer, known: IfNoneMatch) -> Response:
        if row.own and not caller.sees(name):
            raise NotFound(kind, name)
        stored = await revisions.stored(kind, name, row.store(services))
        if revisions.is_known(known, stored):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": revisions.etag(stored)})
        return _answer(row, stored)

    @route(
        "PATCH",
        f"Change parts of a {kind}: a JSON merge patch on the response of GET, then checked like a PUT. A list is "
        "replaced as a whole.",
        404, 409, 412, 413, 422,
        responses={200: TAGGED},
    )  # fmt: skip
    async def patch(
        name: CheckedPathName,
        body: patch_type,
        services: Services,
        caller: writer,  # type: ignore[valid-type]
        wanted: IfMatch,
    ) -> Response:
        store = row.store(services)

        async def write(stored: StoredDocument) -> Response | None:
            known = row.readable(stored)
            shown = {field: value for field, value in answer_of(known).items() if field not in ("name", "rev")}
            merged = read_body(row.body, merge_patch(shown, body))
            noun = _over(row, known, name, merged)
            return _warned(await _written(row, store, stored, noun), noun, services)

        return await revisions.at_revision(kind, name, store, wanted, write)

    @route("DELETE", f"Delete a {kind}{row.left}", 404, 409, 412, 422, status_code=204, response_model=None)
    async def delete(
        name: PathName,
        services: Services,
        caller: writer,  # type: ignore[valid-type]
        wanted: IfMatch,
    ) -> None:
        if row.busy is not None:
            await row.busy(name, services)
        await revisions.delete(kind, name, row.store(services), wanted)

    return router


def _over(row: Named[N], known: N | None, name: str, body: Part) -> N:
    """Return ``body`` under that name, with the fields of `Part.kept` that it leaves out taken from ``known``."""
    left_out = [] if known is None else [field for field in body.kept if field not in body.model_fields_set]
    return named(row.noun, name, body).model_copy(update={field: getattr(known, field) for field in left_out})


async def _written(row: Named[N], store: ResourceStore[N], stored: StoredDocument | None, noun: N) -> Response | None:
    """Replace ``stored`` by ``noun`` and return the response; None if another change was faster.

    A change that changes nothing is not written.
    """
    if stored is None:
        created = await store.create(noun)
        return None if created is None else _answer(row, created, f"/v1/{row.kind}s/{noun.name}")
    rev = revisions.revision(row.kind, stored)
    is_same = row.read_or_none(stored) == noun.model_copy(update={"rev": rev})
    replaced = stored if is_same else await store.replace(noun, rev)
    return None if replaced is None else _answer(row, replaced)


def _warned(answer: Response | None, noun: Part, services: ApiServices) -> Response | None:
    """Return the answer, with a warning if no processor runs the definition that reports failures."""
    if answer is not None and isinstance(noun, Definition):
        warn_of_names(answer, (), services.view, on_failure=noun.on_failure)
    return answer


def _answer(row: Named[N], stored: StoredDocument, location: str | None = None) -> Response:
    """Return the response that shows the noun, with its tag. ``location`` is given if it is new."""
    headers = {"ETag": revisions.etag(stored)} | ({} if location is None else {"Location": location})
    status = HTTPStatus.OK if location is None else HTTPStatus.CREATED
    return Response(row.readable(stored).model_dump_json(by_alias=True), status, headers, "application/json")


_USERS_SHOWN_MAX = 10


async def _demand_unused(calendar: str, services: ApiServices) -> None:
    """Raise `Conflict` if schedules use the calendar, or have times to decide that did."""
    users = services.view.schedules_on(calendar)
    # The stream may still show schedules that were just deleted or edited.
    if len(users) > _USERS_SHOWN_MAX or [user for user in users if await _uses(user, calendar, services)]:
        shown = ", ".join(sorted(users)[:_USERS_SHOWN_MAX])
        more = f" and {len(users) - _USERS_SHOWN_MAX} more" if len(users) > _USERS_SHOWN_MAX else ""
        raise Conflict(f"calendar {calendar!r} is used by the schedules {shown}{more}; edit or delete them first")


async def _uses(schedule: str, calendar: str, services: ApiServices) -> bool:
    stored = await services.schedules.get(schedule)
    try:
        return stored is not None and calendar in calendars_of(decode_schedule(schedule, stored))
    except InvalidInput:
        return True  # until it can be read


_DEFINITIONS = Named(
    Definition,
    DefinitionBody,
    OperatorOfAll,
    lambda services: services.definitions,
    patch={"max_concurrency": None, "tier": 10, "retry": {"attempts": 3}},
    left=". Its jobs go on, with the default limits.",
)
_LANES = Named(
    Lane,
    LaneBody,
    AdminOfAll,
    lambda services: services.lanes,
    patch={"weight": 2, "policy": None},
    left=". Its jobs go on, in a lane with the default values.",
)
_CALENDARS = Named(
    Calendar,
    CalendarBody,
    AdminOfAll,
    lambda services: services.calendars,
    patch={"exclude": ["--12-25", "--12-26"]},
    left="; 409 while schedules use it, or have undecided times that used it.",
    followed="\n\nThe change applies to all undecided nominal times of the schedules that use it. A fire is decided "
    "when it is due, a time that does not fire when its local day is over.",
    busy=_demand_unused,
)
_TENANTS = Named(
    Tenant,
    TenantBody,
    AdminOfAll,
    lambda services: services.tenants,
    patch={"max_running": None},
    left=". Its jobs go on, without a quota.",
    own=True,
)
ROUTERS = [named_routes(_DEFINITIONS), named_routes(_LANES), named_routes(_CALENDARS), named_routes(_TENANTS)]
