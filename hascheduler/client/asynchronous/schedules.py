"""``scheduler.schedules``: what fires when."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from hascheduler.client.asynchronous.asking import each
from hascheduler.client.asynchronous.named import AsyncNamedApi
from hascheduler.client.bodies import encoded, plain, query_of
from hascheduler.client.requests import Request, body_of, job_of, named
from hascheduler.client.results import Job
from hascheduler.client.wire import (
    BackfillResponse,
    CronBody,
    EditPreviewResponse,
    IntervalBody,
    MisfireBody,
    OnceBody,
    PreviewResponse,
    ScheduleResponse,
    TemplateBody,
    TimesBody,
    TriggerNowBody,
    Verdict,
    VerdictResponse,
    VerdictsResponse,
)

Trigger = CronBody | IntervalBody | TimesBody | OnceBody


class AsyncSchedulesApi(AsyncNamedApi[ScheduleResponse]):
    """The jobs of a schedule that is deleted go on."""

    _collection = "schedules"

    async def create(
        self,
        name: str,
        trigger: Trigger,
        job: TemplateBody,
        *,
        misfire: MisfireBody | None = None,
        overlap: str | None = None,
        pause_after_failures: int | None = None,
        labels: Mapping[str, str] | None = None,
        paused: bool | None = None,
    ) -> ScheduleResponse:
        """A new schedule. Sent once: after `Unavailable` look with `get` whether it is there."""
        body = plain(
            name=name,
            trigger=trigger,
            job=job,
            misfire=misfire,
            overlap=overlap,
            pause_after_failures=pause_after_failures,
            labels=labels,
            paused=paused,
        )
        return await self._ask(Request("POST", "/v1/schedules", body_of, content=encoded(body), is_repeatable=False))

    async def list(self, labels: Mapping[str, str] | None = None) -> AsyncIterator[ScheduleResponse]:
        """All, by name; with ``labels`` those that have all of these."""
        async for schedule in each(self._ask, "/v1/schedules", query_of(labels=labels)):
            yield schedule

    async def replace(
        self,
        name: str,
        trigger: Trigger,
        job: TemplateBody,
        *,
        misfire: MisfireBody | None = None,
        overlap: str | None = None,
        pause_after_failures: int | None = None,
        labels: Mapping[str, str] | None = None,
        if_match: str | int | None = None,
    ) -> ScheduleResponse:
        """The schedule with all of its fields anew: what is left out has its default."""
        body = plain(
            trigger=trigger,
            job=job,
            misfire=misfire,
            overlap=overlap,
            pause_after_failures=pause_after_failures,
            labels=labels,
        )
        return await self._put(name, body, if_match)

    async def pause(self, name: str, because: str | None = None) -> ScheduleResponse:
        """No job from now on; may be repeated."""
        path = named("schedules", name, "pause")
        return await self._ask(Request("POST", path, body_of, content=encoded(plain(because=because))))

    async def resume(self, name: str, *, catch_up: bool | None = None) -> ScheduleResponse:
        """With ``catch_up`` the times of the pause fire as its misfire rule says; may be repeated."""
        path = named("schedules", name, "resume")
        return await self._ask(Request("POST", path, body_of, content=encoded(plain(catch_up=catch_up))))

    async def trigger(self, name: str, body: TriggerNowBody | None = None) -> Job:
        """One job of it now, outside its times. ``body`` may hold a ``payload`` and an ``overlap`` in place of the
        schedule's own. Sent once, as each makes a job: after `Unavailable` it may have been made."""
        path = named("schedules", name, "trigger")
        return await self._ask(Request("POST", path, job_of, content=encoded(body or {}), is_repeatable=False))

    async def backfill(
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
        return await self._ask(
            Request("POST", named("schedules", name, "backfill"), body_of, content=encoded(body), more_s=60)
        )

    async def preview(
        self, name: str, *, count: int | None = None, start: datetime | str | None = None
    ) -> PreviewResponse:
        """Its next fires, and what clock changes make of them."""
        query = query_of(count=count, **{"from": start})
        return await self._ask(Request("GET", named("schedules", name, "preview"), body_of, query))

    async def preview_trigger(self, trigger: Trigger, *, count: int | None = None) -> PreviewResponse:
        """The fires of a schedule that does not exist yet."""
        content = encoded(plain(trigger=trigger))
        return await self._ask(
            Request("POST", "/v1/schedules/preview", body_of, query_of(count=count), content=content)
        )

    async def preview_patch(
        self, name: str, changes: Mapping[str, Any], *, count: int | None = None
    ) -> EditPreviewResponse:
        """What `patch` would make of its fires, without it."""
        path = named("schedules", name, "preview")
        content = encoded(dict(changes))
        return await self._ask(Request("POST", path, body_of, query_of(count=count), content=content))

    async def verdicts(self, name: str, verdicts: Sequence[Verdict] = ()) -> AsyncIterator[VerdictResponse]:
        """What became of its nominal times, the newest first; all, or those with these ``verdicts``."""
        path = named("schedules", name, "verdicts")
        async for verdict in each(self._ask, path, query_of(verdict=verdicts)):
            yield verdict

    async def counts(self, name: str) -> VerdictsResponse:
        """How often each verdict was given, how many times are undecided and why, and the newest verdict."""
        path = named("schedules", name, "verdicts")
        return await self._ask(Request("GET", path, body_of, query_of(limit=1)))
