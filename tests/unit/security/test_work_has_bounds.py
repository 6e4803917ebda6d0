"""What a caller asks for is bounded before it is done; a few kilobytes with placeholders become no megabytes."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, cast

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.dispatch.decisions import Fire, Settlement
from hascheduler.dispatch.schedules.previews import FiresToCome, finished
from hascheduler.model.collection import Collection
from hascheduler.model.documents import fired_job
from hascheduler.model.documents.fired_job import WORK_AT_ONCE_MAX, JobMaker, rendered_payload_bytes_max
from hascheduler.model.job import JOB_ID_TAIL_MAX, NewJob, backfill_job_id, fire_job_id, trigger_job_id
from hascheduler.model.payload import PAYLOAD_BYTES_MAX, PLACEHOLDERS_MAX, render
from hascheduler.model.values.instants import LATEST_MS, WallMs, format_instant
from hascheduler.mongo.apply.fired_jobs import FiredJobs
from hascheduler.schema.calendar import Calendar, read_days
from hascheduler.schema.trigger import CalendarUse, Cron, Interval, Trigger
from hascheduler.telemetry.tracing import NO_TRACING
from hascheduler.triggers import due, next_firing, on_calendars
from tests.factories import make_fire, make_schedule, make_template
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, check_problem, create, get, post

LARGE = "x" * 200_000
TOO_MANY = "$$" * (PLACEHOLDERS_MAX + 1)
STEPS_MAX = 4_000


def steps_of(work: Callable[[], object]) -> int:
    steps = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.parametrize(
    ("job", "path"),
    [
        ({"job": {"definition": "log", "payload": {"a": [TOO_MANY]}, "render": True}}, "job.payload"),
        (
            {
                "jobs": [
                    {"ref": ref, "definition": "log", "payload": "$$" * 1_500, "render": True, "depends_on": needs}
                    for ref, needs in (("a", []), ("b", ["a"]))
                ]
            },
            "jobs",
        ),
    ],
)
async def test_a_template_with_too_many_placeholders_is_refused_before_it_is_read(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, job: dict[str, Any], path: str
) -> None:
    rendered: list[Any] = []
    monkeypatch.setattr(fired_job, "render", lambda payload, _: rendered.append(payload))
    body = {"name": "tick", "trigger": TICK["trigger"], **job}
    problem = check_problem(await client.post("/v1/schedules", json=body), 422, path)
    assert f"at most {PLACEHOLDERS_MAX}" in problem["detail"]
    assert rendered == []


async def test_large_payloads_of_a_backfill_are_made_and_sent_a_few_at_a_time(
    client: httpx2.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(client, job={"definition": "log", "payload": LARGE + "${local_date}", "render": True})
    made: list[int] = []
    held = 0
    submit_many = world.jobs.submit_many

    def counted(payload: Any, values: Any) -> Any:
        nonlocal held
        held += 1
        return render(payload, values)

    async def sent(jobs: Sequence[NewJob]) -> Any:
        nonlocal held
        made.append(held)
        held = 0
        return await submit_many(jobs)

    monkeypatch.setattr(fired_job, "render", counted)
    monkeypatch.setattr(world.jobs, "submit_many", sent)
    span = {"from": format_instant(NOW - 50_000), "to": format_instant(NOW - 1_000)}
    assert (await post(client, "/v1/schedules/tick/backfill", span))["created"] == 50
    assert sum(made) == 50
    assert max(made) * len(LARGE) <= WORK_AT_ONCE_MAX


WORKDAYS = Calendar(name="x", weekdays=(0, 1, 2, 3, 4))
ODD = Calendar(name="odd", weekdays=(0, 2, 4))
FULL = Calendar(
    name="full",
    weekdays=(0, 1, 2, 3, 4, 5, 6),
    exclude=read_days(["1970-01-01/2099-12-31", *(f"--{month:02d}-01" for month in range(1, 13))]),
)
NEVER = [
    (Cron("* * * * *"), CalendarUse(("x",), ("x",))),
    (Interval(100, WallMs(0)), CalendarUse(("x",), ("x",))),
    (Cron("0 0 29 2 *", "Europe/Paris"), CalendarUse(("full",))),
    (Cron("*/5 * * * 6,0", "Australia/Lord_Howe"), CalendarUse(("x",))),
]


def of(pattern: Any, use: CalendarUse) -> Trigger:
    calendars = {each.name: each for each in (WORKDAYS, ODD, FULL)}
    return on_calendars(Trigger(pattern, calendars=use), calendars)


@pytest.mark.parametrize(("pattern", "use"), NEVER)
def test_calendars_that_leave_out_everything_are_seen_through_in_few_steps(pattern: Any, use: CalendarUse) -> None:
    trigger = of(pattern, use)
    due._searched.cache_clear()
    next_firing(of(pattern, CalendarUse(())), NOW)  # clocks of years are found once
    assert steps_of(lambda: next_firing(trigger, NOW)) < 4 * STEPS_MAX
    assert next_firing(trigger, NOW) is None
    shown = finished(FiresToCome("s", trigger, NOW, 0).first(10))
    assert all(fire.excluded for fire in shown)
    assert steps_of(lambda: finished(FiresToCome("s", trigger, NOW, 0).first(10))) < STEPS_MAX


async def turns_of(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> int:
    """In how many pieces the request's long work is cut."""
    turns = 0
    sleep = asyncio.sleep

    async def turned(seconds: float) -> None:
        nonlocal turns
        turns += 1
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", turned)
    await work()
    return turns


PREVIEW = {"trigger": {"type": "cron", "expression": "* * * * *", "timezone": "Europe/Paris"}}


@pytest.mark.parametrize(
    ("ask", "pieces"),
    [
        (lambda client: post(client, "/v1/schedules/preview?count=1000", PREVIEW), 100),
        (lambda client: post(client, "/v1/schedules/tick/preview?count=1000", {"overlap": "skip"}), 300),
        (lambda client: get(client, "/v1/schedules?limit=200"), 20),
        (lambda client: get(client, "/v1/calendars?limit=200"), 20),
        (lambda client: get(client, "/v1/schedules/old/verdicts"), 30),
        (lambda client: get(client, "/v1/schedules/often/preview?from=2099-01-01T00:00:00Z"), 60),
    ],
    ids=[
        "a preview", "a preview of an edit", "schedules", "calendars", "verdicts of a long pause",
        "a later beginning",
    ],
)  # fmt: skip
async def test_long_work_of_a_request_is_cut(
    client: httpx2.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch, ask: Any, pieces: int
) -> None:
    await create(client)
    for number in range(20):
        await create(client, name=f"s{number}")
        answer = await client.put(f"/v1/calendars/c{number}", json={"weekdays": ["mon"]})
        assert answer.status_code == 201
    await create(client, name="often", trigger={"type": "interval", "every": "1s", "max_fires": 10**12})
    await create(client, name="old")
    paused = {"since_ms": 10**12 - 1, "cursor_ms": 10**12 - 1, "paused_at_ms": 10**12}
    world.rewrite(Collection.SCHEDULES, "old", **paused)
    assert await turns_of(monkeypatch, lambda: ask(client)) >= pieces


async def test_a_page_of_large_payloads_ends_early_and_says_where_to_go_on(
    client: httpx2.AsyncClient, world: World
) -> None:
    for number in range(30):
        await create(client, name=f"s{number:02}", job={"definition": "log", "payload": LARGE})
    found: list[str] = []
    pages = 0
    next = "."
    while next is not None:
        page = await get(client, f"/v1/schedules?limit=200&after={next}")
        found += [schedule["name"] for schedule in page["items"]]
        next, pages = page["next"], pages + 1
    assert found == [f"s{number:02}" for number in range(30)]
    assert pages == 2


PATH = "/v1/schedules/tick"
LONG = "t" * 256
MANY = PAYLOAD_BYTES_MAX // 256 + 1
"""As many targets of that length as are one too many."""


def filling(payload: Any, target: str = LONG, **more: Any) -> dict[str, Any]:
    return {**TICK, "job": {"definition": "log", "target": target, "payload": payload, "render": True}, **more}


async def too_large(answer: httpx2.Response, *path: str) -> None:
    problem = check_problem(answer, 422)
    assert [(error["path"], error["expected"]) for error in problem["errors"]] == [
        (".".join(path), f"at most {PAYLOAD_BYTES_MAX}")
    ]


async def test_no_schedule_is_created_that_grows_too_large(client: httpx2.AsyncClient, world: World) -> None:
    before = world.everything()
    await too_large(await client.post("/v1/schedules", json=filling("${target}" * MANY)), "job", "payload")
    await too_large(await client.post("/v1/schedules", json=filling(["${job_id}"] * 10_000)), "job", "payload")
    assert world.everything() == before


async def test_what_0_2_0_took_is_neither_triggered_nor_backfilled_nor_filled(
    client: httpx2.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(client, trigger={"type": "interval", "every": "1h"})
    # 0.5 MB that become some 3 MB in each job.
    world.rewrite(Collection.SCHEDULES, "tick", render=True, payload="${job_id}" * 58_000)
    filled: list[Any] = []
    monkeypatch.setattr(fired_job, "render", lambda payload, _: filled.append(payload))
    check_problem(await client.post(f"{PATH}/trigger"), 409)
    span = {"from": format_instant(NOW - 3 * 3_600_000), "to": format_instant(NOW)}
    check_problem(await client.post(f"{PATH}/backfill", json=span), 409)
    assert filled == []
    monkeypatch.undo()
    assert (await post(client, f"{PATH}/trigger", {"payload": "small"}, 201))["payload"] == "small"


TEXTS = st.text(max_size=30)
PIECES = st.sampled_from(
    [
        "${target}", "${job_id}", "${nominal_at}", "${nominal_ms}", "${label.a}", "${x}", "$$", "$", "{", "}", '"',
        "é", "\\",
    ]
)  # fmt: skip
FILLED = st.lists(PIECES | TEXTS, max_size=8).map("".join)
PAYLOADS = st.recursive(
    FILLED | st.integers(-9, 9) | st.none(),
    lambda deeper: st.lists(deeper, max_size=4) | st.dictionaries(FILLED, deeper, max_size=4),
    max_leaves=12,
)


@given(PAYLOADS, st.text(min_size=1, max_size=20), TEXTS, st.integers(0, LATEST_MS - 1))
def test_no_job_is_larger_than_what_was_counted(payload: Any, target: str, label: str, nominal_ms: int) -> None:
    schedule = make_schedule(
        "tick", template=make_template(target=target), payload=payload, labels={"a": label}, render=True
    )
    counted = rendered_payload_bytes_max("tick", schedule)
    for id in (
        fire_job_id("tick", nominal_ms),
        backfill_job_id("tick", nominal_ms),
        trigger_job_id("tick", "0194f3a1b2c3000001deadbeef01"),
    ):
        assert len(id) <= len("backfill:tick:") + JOB_ID_TAIL_MAX
        [job] = JobMaker("tick", schedule).jobs(id, WallMs(nominal_ms), serial=False)
        text = json.dumps(job.payload, ensure_ascii=False, separators=(",", ":"))
        assert len(text.encode()) <= counted


class _Groups(FiredJobs):
    """Inserts nothing."""

    def __init__(self) -> None:
        super().__init__(cast("Any", _Jobs()), 1_000, NO_TRACING)
        self.groups: list[int] = []

    async def _insert_group(self, fires: Any, *_: Any, **__: Any) -> Any:
        self.groups.append(len(fires))
        return dict.fromkeys(fires, Settlement.DONE)


class _Jobs(dict[str, Any]):
    def __missing__(self, _: str) -> Any:
        return self

    def with_options(self, **_: Any) -> Any:
        return self


@pytest.mark.parametrize(
    ("payload", "due", "at_once"), [("x", 100, 100), (LARGE, 50, 20), ("$$" * 100_000, 5, 1), ([1] * 20_000, 5, 1)]
)
async def test_fires_that_are_due_together_are_rendered_and_sent_a_few_at_a_time(
    payload: Any, due: int, at_once: int
) -> None:
    fires: dict[Fire, Any] = {
        make_fire(1, schedule=f"s{number}"): make_schedule(f"s{number}", payload=payload, render=True)
        for number in range(due)
    }
    jobs = _Groups()
    settled, _ = await jobs.insert(fires, {}, WallMs(NOW), majority=True)
    assert list(settled) == list(fires)
    assert max(jobs.groups) <= at_once
    assert sum(jobs.groups) == due
