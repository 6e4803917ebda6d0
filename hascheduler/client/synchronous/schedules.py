# Written by scripts/generate-client from hascheduler/client/asynchronous/schedules.py: change that one.
"""``scheduler.schedules``: the schedules, their fires and their verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from hascheduler.client import answers, options
from hascheduler.client.answers import ScheduleCountsResponse, ScheduleResponse
from hascheduler.client.bodies import plain, query_of
from hascheduler.client.flows import ScheduleChange, change_where
from hascheduler.client.options import ScheduleCountFilter, ScheduleListFilter, ScheduleOptions, TemplateBody, Verdict
from hascheduler.client.requests import MANY_S, Rev, key_of, matching, probe_for, submit_one
from hascheduler.client.results import Changed, Job, ListPage
from hascheduler.client.synchronous.asking import Asker
from hascheduler.client.synchronous.named import IfNone, NamedApi

Trigger = options.CronBody | options.IntervalBody | options.TimesBody | options.OnceBody | options.AnyBody
Labels = Mapping[str, str] | Sequence[str] | None
"""``{"team": "a"}``, or texts such as ``team=a``."""


class SchedulesApi(NamedApi[ScheduleResponse]):
    """The schedules; the jobs of a deleted schedule go on."""

    def __init__(self, asker: Asker) -> None:
        super().__init__(asker, "schedules", ScheduleResponse)

    def create(
        self,
        name: str,
        trigger: Trigger,
        job: TemplateBody | None = None,
        *,
        paused: bool | None = None,
        **more: Unpack[ScheduleOptions],
    ) -> ScheduleResponse:
        """Create a schedule with one ``job`` or several ``jobs``; before a retry, check whether it exists."""
        return self.create_document(plain(name=name, trigger=trigger, job=job, paused=paused, **more))

    def create_document(self, document: Mapping[str, Any]) -> ScheduleResponse:
        """Create a schedule as `create` does, from a document as a file or a program holds it, with its ``name``."""
        name = document.get("name")
        is_name = isinstance(name, str) and name.strip(".")  # else it is refused
        probe = probe_for(self._path(str(name)), document, ScheduleResponse) if is_name else None
        return self._post(ScheduleResponse, "/v1/schedules", dict(document), probe=probe)

    def put(
        self,
        name: str,
        trigger: Trigger,
        job: TemplateBody | None = None,
        *,
        if_match: Rev = None,
        if_none_match: IfNone = None,
        **more: Unpack[ScheduleOptions],
    ) -> ScheduleResponse:
        """Create the schedule or replace all of its fields: a field that is left out gets its default."""
        body = plain(trigger=trigger, job=job, **more)
        return self.put_document(name, body, if_match=if_match, if_none_match=if_none_match)

    replace = put

    def list(self, labels: Labels = None, **filter: Unpack[ScheduleListFilter]) -> Iterator[ScheduleResponse]:
        """Yield all, by name unless ``sort`` is given; with ``labels`` or a filter those that match."""
        return self._each(ScheduleResponse, "/v1/schedules", labels=labels, **filter)

    def page(
        self,
        labels: Labels = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        **filter: Unpack[ScheduleListFilter],
    ) -> ListPage[ScheduleResponse]:
        return self._page(ScheduleResponse, "/v1/schedules", labels=labels, **filter, limit=limit, after=after)

    def count(self, labels: Labels = None, **filter: Unpack[ScheduleCountFilter]) -> ScheduleCountsResponse:
        """Return how many match, by state."""
        return self._get(ScheduleCountsResponse, "/v1/schedules:counts", labels=labels, **filter)

    def pause(self, name: str, because: str | None = None, *, if_match: Rev = None) -> ScheduleResponse:
        """Fire no more jobs from now on; may be repeated."""
        return self._change(name, "pause", if_match, {"paused": True}, because=because)

    def resume(self, name: str, *, catch_up: bool | None = None, if_match: Rev = None) -> ScheduleResponse:
        """Resume it; with ``catch_up`` the times of the pause fire as its misfire rule says; may be repeated."""
        return self._change(name, "resume", if_match, {"paused": False}, catch_up=catch_up)

    def reset(self, name: str, start: str | None = None, *, if_match: Rev = None) -> ScheduleResponse:
        """Fire again from ``start`` (default now) what fired ahead of time by a wrong clock; may be repeated."""
        return self._change(name, "reset", if_match, None, **{"from": start})

    def _change(
        self, name: str, verb: str, if_match: Rev, leaves: Mapping[str, Any] | None, **body: object
    ) -> ScheduleResponse:
        """Make a change; ``leaves`` is what the schedule shows afterwards, None if nothing shows the change."""
        is_shown = leaves is not None and if_match is not None
        probe = probe_for(self._path(name), leaves or {}, ScheduleResponse) if is_shown else None
        path, headers = self._path(name, verb), matching(if_match)
        return self._post(ScheduleResponse, path, plain(**body), headers=headers, probe=probe)

    def trigger(
        self, name: str, body: options.TriggerNowBody | None = None, *, idempotency_key: str | None = None
    ) -> Job:
        """Make one job now, one per key; ``body`` may have a ``payload`` and an ``overlap`` for it."""
        return self._asker.ask(submit_one(self._path(name, "trigger"), body or {}, idempotency_key))

    def pause_where(self, *, because: str | None = None, **which: Unpack[ScheduleChange]) -> Changed:
        """Pause all that match and are not paused, in as many requests as it takes."""
        return self._asker.run(change_where("schedules:pause", which, because=because))

    def resume_where(self, *, catch_up: bool | None = None, **which: Unpack[ScheduleChange]) -> Changed:
        """Resume all that match and are paused."""
        return self._asker.run(change_where("schedules:resume", which, catch_up=catch_up))

    def reset_where(self, **which: Unpack[ScheduleChange]) -> Changed:
        """Reset all that match and that fired ahead of time."""
        return self._asker.run(change_where("schedules:reset", which))

    def trigger_where(self, *, idempotency_key: str | None = None, **which: Unpack[ScheduleChange]) -> Changed:
        """Make one job of each that matches; under one key each is triggered once."""
        return self._asker.run(change_where("schedules:trigger", which, key=key_of(idempotency_key)))

    def backfill(
        self,
        name: str,
        first: datetime | str,
        last: datetime | str,
        *,
        overlap: str | None = None,
        dry_run: bool | None = None,
    ) -> answers.BackfillResponse:
        """Make a job for each nominal time from ``first`` through ``last`` without one; ``dry_run`` only counts."""
        body = plain(**{"from": first, "to": last}, overlap=overlap, dry_run=dry_run)
        return self._post(answers.BackfillResponse, self._path(name, "backfill"), body, more_s=MANY_S)

    def preview(
        self, name: str, *, count: int | None = None, start: datetime | str | None = None
    ) -> answers.PreviewResponse:
        """Return its next fires, and how clock changes affect them."""
        path = self._path(name, "preview")
        return self._get(answers.PreviewResponse, path, count=count, **{"from": start})

    def preview_trigger(
        self, trigger: Trigger, *, count: int | None = None, name: str | None = None
    ) -> answers.PreviewResponse:
        """Return the fires of a schedule that does not exist yet; its future name decides the jitter."""
        path, query, body = "/v1/schedules/preview", query_of(count=count), plain(trigger=trigger, name=name)
        return self._post(answers.PreviewResponse, path, body, query=query)

    def preview_patch(
        self, name: str, changes: Mapping[str, Any], *, count: int | None = None
    ) -> answers.EditPreviewResponse:
        """Return the fires after a `patch`, without applying it."""
        path, query = self._path(name, "preview"), query_of(count=count)
        return self._post(answers.EditPreviewResponse, path, dict(changes), query=query)

    def verdicts(self, name: str, verdicts: Sequence[Verdict] = ()) -> Iterator[answers.VerdictResponse]:
        """Yield the verdicts on its nominal times, the newest first; all, or those with these ``verdicts``."""
        return self._each(answers.VerdictResponse, self._path(name, "verdicts"), verdict=verdicts)

    def counts(
        self, name: str, verdicts: Sequence[Verdict] = (), *, limit: int = 1, after: str | None = None
    ) -> answers.VerdictsResponse:
        """Return how often each verdict was given, how many times are undecided and why, and the newest verdicts."""
        path = self._path(name, "verdicts")
        return self._get(answers.VerdictsResponse, path, verdict=verdicts, limit=limit, after=after)

    def recent(self, names: Sequence[str]) -> answers.RecentResponse:
        """Return the last 20 decided times of each of at most 50 schedules, and how their jobs ended."""
        return self._get(answers.RecentResponse, "/v1/schedules:recent", name=names)

    def timeline(
        self, *, limit: int | None = None, after: str | None = None, **filter: Unpack[options.TimelineFilter]
    ) -> answers.TimelineResponse:
        """Return a page of all schedules' nominal times: the verdicts ``behind`` now, and the times ``ahead`` of it."""
        return self._get(answers.TimelineResponse, "/v1/timeline", **filter, limit=limit, after=after)
