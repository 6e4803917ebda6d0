# Written by scripts/generate-client from hascheduler/client/asynchronous/schedules.py: change that one.
"""``scheduler.schedules``: what fires when."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from hascheduler.client.answers import (
    BackfillResponse,
    EditPreviewResponse,
    PreviewResponse,
    ScheduleCountsResponse,
    ScheduleResponse,
    TimelineResponse,
    VerdictResponse,
    VerdictsResponse,
)
from hascheduler.client.bodies import encoded, plain, query_of
from hascheduler.client.flows import ScheduleChange, change_where, key_of
from hascheduler.client.options import (
    AnyBody,
    CronBody,
    IntervalBody,
    OnceBody,
    ScheduleListFilter,
    ScheduleOptions,
    TemplateBody,
    TimelineFilter,
    TimesBody,
    TriggerNowBody,
    Verdict,
)
from hascheduler.client.requests import MANY_S, Request, asked, keyed, look_for, matching, page, submitted
from hascheduler.client.results import Changed, Job, ListPage
from hascheduler.client.synchronous.asking import Ask, Run, each
from hascheduler.client.synchronous.named import NamedApi

Trigger = CronBody | IntervalBody | TimesBody | OnceBody | AnyBody
Labels = Mapping[str, str] | Sequence[str]
"""``{"team": "a"}``, or texts such as ``team=a``."""
Rev = str | int | None


class SchedulesApi(NamedApi[ScheduleResponse]):
    """The jobs of a schedule that is deleted go on."""

    _collection = "schedules"

    def __init__(self, ask: Ask, run: Run) -> None:
        super().__init__(ask, "schedules", ScheduleResponse)
        self._run = run

    def create(
        self,
        name: str,
        trigger: Trigger,
        job: TemplateBody | None = None,
        *,
        paused: bool | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleResponse:
        """A new schedule, of one ``job`` or of several ``jobs``. If it is unknown whether a try made it, the next looks
        first: what is there and is as asked is the answer."""
        return self.create_document(plain(name=name, trigger=trigger, job=job, paused=paused, **options))

    def create_document(self, document: Mapping[str, Any]) -> ScheduleResponse:
        """As `create`, of a schedule as a file or a program holds it, with its ``name``."""
        name = document.get("name")
        is_name = isinstance(name, str) and name.strip(".")  # else it is refused
        look = look_for(self._path(str(name)), document, ScheduleResponse) if is_name else None
        return self._ask(asked(ScheduleResponse, "POST", "/v1/schedules", body=dict(document), look=look))

    def list(self, labels: Labels | None = None, **filter: Unpack[ScheduleListFilter]) -> Iterator[ScheduleResponse]:
        """All, by name; with ``labels`` those that have all of these, and with a filter those that match."""
        query = query_of(labels=labels, **filter)
        for schedule in each(self._ask, "/v1/schedules", query, ScheduleResponse):
            yield schedule

    def page(
        self,
        labels: Labels | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        **filter: Unpack[ScheduleListFilter],
    ) -> ListPage[ScheduleResponse]:
        query = query_of(labels=labels, **filter)
        return self._ask(page("/v1/schedules", query, ScheduleResponse, limit, after))

    def count(self, labels: Labels | None = None, **filter: Unpack[ScheduleListFilter]) -> ScheduleCountsResponse:
        """How many match, by state."""
        query = query_of(labels=labels, **filter)
        return self._ask(asked(ScheduleCountsResponse, "GET", "/v1/schedules:counts", query))

    def replace(
        self,
        name: str,
        trigger: Trigger,
        job: TemplateBody | None = None,
        *,
        if_match: Rev = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleResponse:
        """Replace all fields of the schedule: what is left out gets its default."""
        return self.put_document(name, plain(trigger=trigger, job=job, **options), if_match=if_match)

    def pause(self, name: str, because: str | None = None, *, if_match: Rev = None) -> ScheduleResponse:
        """No job from now on; may be repeated."""
        return self._change(name, "pause", if_match, {"paused": True}, because=because)

    def resume(self, name: str, *, catch_up: bool | None = None, if_match: Rev = None) -> ScheduleResponse:
        """With ``catch_up`` the times of the pause fire as its misfire rule says; may be repeated."""
        return self._change(name, "resume", if_match, {"paused": False}, catch_up=catch_up)

    def reset(self, name: str, start: str | None = None, *, if_match: Rev = None) -> ScheduleResponse:
        """A schedule that fired ahead of time, by a clock that was wrong, fires again from ``start`` on, which is now;
        may be repeated."""
        return self._change(name, "reset", if_match, None, **{"from": start})

    def _change(
        self, name: str, verb: str, if_match: Rev, leaves: Mapping[str, Any] | None, **body: object
    ) -> ScheduleResponse:
        """``leaves`` is how it shows that the change was made; None: nothing does."""
        is_shown = leaves is not None and if_match is not None
        look = look_for(self._path(name), leaves or {}, ScheduleResponse) if is_shown else None
        path, headers = self._path(name, verb), matching(if_match)
        return self._ask(asked(ScheduleResponse, "POST", path, body=plain(**body), headers=headers, look=look))

    def trigger(self, name: str, body: TriggerNowBody | None = None, *, idempotency_key: str | None = None) -> Job:
        """One job of it now, outside its times; under one key it is one, however often it is asked for. ``body`` may
        hold a ``payload`` and an ``overlap`` in place of the schedule's own."""
        path, content, key = self._path(name, "trigger"), encoded(body or {}), key_of(idempotency_key)
        return self._ask(Request("POST", path, submitted, content=content, **keyed(key)))

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
        path = self._path(name, "backfill")
        return self._ask(asked(BackfillResponse, "POST", path, body=body, more_s=MANY_S))

    def preview(self, name: str, *, count: int | None = None, start: datetime | str | None = None) -> PreviewResponse:
        """Its next fires, and what clock changes make of them."""
        query = query_of(count=count, **{"from": start})
        return self._ask(asked(PreviewResponse, "GET", self._path(name, "preview"), query))

    def preview_trigger(
        self, trigger: Trigger, *, count: int | None = None, name: str | None = None
    ) -> PreviewResponse:
        """The fires of a schedule that does not exist yet; what it is to be called decides the jitter."""
        path, query, body = "/v1/schedules/preview", query_of(count=count), plain(trigger=trigger, name=name)
        return self._ask(asked(PreviewResponse, "POST", path, query, body))

    def preview_patch(self, name: str, changes: Mapping[str, Any], *, count: int | None = None) -> EditPreviewResponse:
        """What `patch` would make of its fires, without it."""
        path, query = self._path(name, "preview"), query_of(count=count)
        return self._ask(asked(EditPreviewResponse, "POST", path, query, dict(changes)))

    def verdicts(self, name: str, verdicts: Sequence[Verdict] = ()) -> Iterator[VerdictResponse]:
        """What became of its nominal times, the newest first; all, or those with these ``verdicts``."""
        query = query_of(verdict=verdicts)
        for verdict in each(self._ask, self._path(name, "verdicts"), query, VerdictResponse):
            yield verdict

    def counts(
        self, name: str, verdicts: Sequence[Verdict] = (), *, limit: int = 1, after: str | None = None
    ) -> VerdictsResponse:
        """How often each verdict was given, how many times are undecided and why, and the newest ``limit`` verdicts."""
        query = query_of(verdict=verdicts, limit=limit, after=after)
        return self._ask(asked(VerdictsResponse, "GET", self._path(name, "verdicts"), query))

    def timeline(
        self, *, limit: int | None = None, after: str | None = None, **filter: Unpack[TimelineFilter]
    ) -> TimelineResponse:
        """A page of what became of the times of all schedules in the time ``behind``, and which come in the time
        ``ahead``; of those whose name contains ``text`` and that have all ``labels``."""
        query = query_of(**filter, limit=limit, after=after)
        return self._ask(asked(TimelineResponse, "GET", "/v1/timeline", query))
