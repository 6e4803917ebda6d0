# Written by scripts/generate-client from hascheduler/client/asynchronous/schedules.py: change that one.
"""``scheduler.schedules``: what fires when."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from hascheduler.client.bodies import ScheduleListFilter, encoded, plain, query_of
from hascheduler.client.flows import ScheduleChange, change_where, key_of
from hascheduler.client.requests import (
    Request,
    as_it_is,
    body_of,
    demand_key,
    look_for,
    matching,
    named,
    page,
    submitted,
)
from hascheduler.client.results import Changed, Job, ListPage
from hascheduler.client.synchronous.asking import Ask, Run, each
from hascheduler.client.synchronous.named import NamedApi
from hascheduler.client.wire import (
    BackfillResponse,
    CronBody,
    EditPreviewResponse,
    GraphJobBody,
    IntervalBody,
    MisfireBody,
    OnceBody,
    PreviewResponse,
    ScheduleCountsResponse,
    ScheduleResponse,
    TemplateBody,
    TimelineResponse,
    TimesBody,
    TriggerNowBody,
    Verdict,
    VerdictResponse,
    VerdictsResponse,
)

Trigger = CronBody | IntervalBody | TimesBody | OnceBody
Labels = Mapping[str, str] | Sequence[str]
"""``{"team": "a"}``, or texts such as ``team=a``."""


class SchedulesApi(NamedApi[ScheduleResponse]):
    """The jobs of a schedule that is deleted go on."""

    _collection = "schedules"

    def __init__(self, ask: Ask, run: Run) -> None:
        super().__init__(ask)
        self._run = run

    def create(
        self,
        name: str,
        trigger: Trigger,
        job: TemplateBody | None = None,
        *,
        jobs: Sequence[GraphJobBody] | None = None,
        misfire: MisfireBody | None = None,
        overlap: str | None = None,
        pause_after_failures: int | None = None,
        labels: Mapping[str, str] | None = None,
        paused: bool | None = None,
    ) -> ScheduleResponse:
        """A new schedule, of one ``job`` or of several ``jobs``. Where it is unknown whether a try made it, the next
        looks first: what is there and is as asked is the answer."""
        document = plain(
            name=name,
            trigger=trigger,
            job=job,
            jobs=jobs,
            misfire=misfire,
            overlap=overlap,
            pause_after_failures=pause_after_failures,
            labels=labels,
            paused=paused,
        )
        return self.create_document(document)

    def create_document(self, document: Mapping[str, Any]) -> ScheduleResponse:
        """As `create`, of a schedule as a file or a program holds it, with its ``name``."""
        content = encoded(dict(document))
        name = document.get("name")
        is_name = isinstance(name, str) and name.strip(".")  # else it is refused
        look = look_for(named(self._collection, str(name)), document) if is_name else None
        return self._ask(Request("POST", "/v1/schedules", body_of, content=content, look=look))

    def list(self, labels: Labels | None = None, **filter: Unpack[ScheduleListFilter]) -> Iterator[ScheduleResponse]:
        """All, by name; with ``labels`` those that have all of these, and with a filter those that match."""
        for schedule in each(self._ask, "/v1/schedules", query_of(labels=labels, **filter)):
            yield schedule

    def page(
        self,
        labels: Labels | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        **filter: Unpack[ScheduleListFilter],
    ) -> ListPage[ScheduleResponse]:
        return self._ask(page("/v1/schedules", query_of(labels=labels, **filter), as_it_is, limit, after))

    def count(self, labels: Labels | None = None, **filter: Unpack[ScheduleListFilter]) -> ScheduleCountsResponse:
        """How many match, by state."""
        return self._ask(Request("GET", "/v1/schedules:counts", body_of, query_of(labels=labels, **filter)))

    def replace(
        self,
        name: str,
        trigger: Trigger,
        job: TemplateBody | None = None,
        *,
        jobs: Sequence[GraphJobBody] | None = None,
        misfire: MisfireBody | None = None,
        overlap: str | None = None,
        pause_after_failures: int | None = None,
        labels: Mapping[str, str] | None = None,
        if_match: str | int | None = None,
    ) -> ScheduleResponse:
        """Replace all fields of the schedule: what is left out gets its default."""
        body = plain(
            trigger=trigger,
            job=job,
            jobs=jobs,
            misfire=misfire,
            overlap=overlap,
            pause_after_failures=pause_after_failures,
            labels=labels,
        )
        return self.put_document(name, body, if_match=if_match)

    def pause(self, name: str, because: str | None = None, *, if_match: str | int | None = None) -> ScheduleResponse:
        """No job from now on; may be repeated."""
        path, content = named("schedules", name, "pause"), encoded(plain(because=because))
        look = None if if_match is None else look_for(named("schedules", name), {"paused": True})
        return self._ask(Request("POST", path, body_of, headers=matching(if_match), content=content, look=look))

    def resume(self, name: str, *, catch_up: bool | None = None, if_match: str | int | None = None) -> ScheduleResponse:
        """With ``catch_up`` the times of the pause fire as its misfire rule says; may be repeated."""
        path, content = named("schedules", name, "resume"), encoded(plain(catch_up=catch_up))
        look = None if if_match is None else look_for(named("schedules", name), {"paused": False})
        return self._ask(Request("POST", path, body_of, headers=matching(if_match), content=content, look=look))

    def reset(self, name: str, start: str | None = None, *, if_match: str | int | None = None) -> ScheduleResponse:
        """A schedule that fired ahead of time, by a clock that was wrong, fires again from ``start`` on, which is now;
        may be repeated."""
        path, content = named("schedules", name, "reset"), encoded(plain(**{"from": start}))
        return self._ask(Request("POST", path, body_of, headers=matching(if_match), content=content))

    def trigger(self, name: str, body: TriggerNowBody | None = None, *, idempotency_key: str | None = None) -> Job:
        """One job of it now, outside its times; under one key it is one, however often it is asked for. ``body`` may
        hold a ``payload`` and an ``overlap`` in place of the schedule's own."""
        key = key_of(idempotency_key)
        path, headers = named("schedules", name, "trigger"), {"Idempotency-Key": demand_key(key)}
        return self._ask(Request("POST", path, submitted, headers=headers, content=encoded(body or {}), key=key))

    def pause_where(self, *, because: str | None = None, **which: Unpack[ScheduleChange]) -> Changed:
        """Pause all that match and are not paused, in as many requests as it takes."""
        return self._run(change_where("schedules:pause", which, because=because))

    def resume_where(self, *, catch_up: bool | None = None, **which: Unpack[ScheduleChange]) -> Changed:
        """Resume all that match and are paused."""
        return self._run(change_where("schedules:resume", which, catch_up=catch_up))

    def reset_where(self, **which: Unpack[ScheduleChange]) -> Changed:
        """Reset all that match and that fired ahead of time."""
        return self._run(change_where("schedules:reset", which))

    def trigger_where(self, *, idempotency_key: str | None = None, **which: Unpack[ScheduleChange]) -> Changed:
        """Make one job of each that matches; under one key each is triggered once."""
        return self._run(change_where("schedules:trigger", which, key=key_of(idempotency_key)))

    def backfill(
        self,
        name: str,
        first: datetime | str,
        last: datetime | str,
        *,
        overlap: str | None = None,
        dry_run: bool | None = None,
    ) -> BackfillResponse:
        """A job for each nominal time from ``first`` through ``last`` that has none; ``dry_run`` only counts them."""
        body = plain(**{"from": first, "to": last}, overlap=overlap, dry_run=dry_run)
        return self._ask(
            Request("POST", named("schedules", name, "backfill"), body_of, content=encoded(body), more_s=60)
        )

    def preview(self, name: str, *, count: int | None = None, start: datetime | str | None = None) -> PreviewResponse:
        """Its next fires, and what clock changes make of them."""
        query = query_of(count=count, **{"from": start})
        return self._ask(Request("GET", named("schedules", name, "preview"), body_of, query))

    def preview_trigger(
        self, trigger: Trigger, *, count: int | None = None, name: str | None = None
    ) -> PreviewResponse:
        """The fires of a schedule that does not exist yet; what it is to be called decides the jitter."""
        content = encoded(plain(trigger=trigger, name=name))
        return self._ask(Request("POST", "/v1/schedules/preview", body_of, query_of(count=count), content=content))

    def preview_patch(self, name: str, changes: Mapping[str, Any], *, count: int | None = None) -> EditPreviewResponse:
        """What `patch` would make of its fires, without it."""
        path = named("schedules", name, "preview")
        content = encoded(dict(changes))
        return self._ask(Request("POST", path, body_of, query_of(count=count), content=content))

    def verdicts(self, name: str, verdicts: Sequence[Verdict] = ()) -> Iterator[VerdictResponse]:
        """What became of its nominal times, the newest first; all, or those with these ``verdicts``."""
        path = named("schedules", name, "verdicts")
        for verdict in each(self._ask, path, query_of(verdict=verdicts)):
            yield verdict

    def counts(
        self, name: str, verdicts: Sequence[Verdict] = (), *, limit: int = 1, after: str | None = None
    ) -> VerdictsResponse:
        """How often each verdict was given, how many times are undecided and why, and the newest ``limit`` verdicts."""
        path = named("schedules", name, "verdicts")
        return self._ask(Request("GET", path, body_of, query_of(verdict=verdicts, limit=limit, after=after)))

    def timeline(
        self,
        *,
        behind: str | float | None = None,
        ahead: str | float | None = None,
        text: str | None = None,
        labels: Labels | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> TimelineResponse:
        """A page of what became of the times of all schedules in the time ``behind``, and which come in the time
        ``ahead``; of those whose name contains ``text`` and that have all ``labels``."""
        query = query_of(behind=behind, ahead=ahead, text=text, labels=labels, limit=limit, after=after)
        return self._ask(Request("GET", "/v1/timeline", body_of, query))
