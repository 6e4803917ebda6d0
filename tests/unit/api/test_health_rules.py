"""What is wrong with the cluster, in words: each rule finds its trouble, and calls right only what it saw."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from hascheduler.api.ops.health_rules import RULES, Known, ScheduleTrouble, health_of
from hascheduler.api.routing import recent_reads
from hascheduler.api.routing.recent_reads import EVERY_MS, Unread
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.ports import FailedJob, FailedJobs
from hascheduler.processor import JobContext
from hascheduler.schema.failover import Cause
from hascheduler.schema.pause import EVERYTHING, StandingPause, drain_id
from hascheduler.schema.replica import LastCheck
from hascheduler.testing import VirtualScheduler
from tests.factories import make_failover, make_replica
from tests.unit.api.doubles import NOW, StandingView, World
from tests.unit.api.requests import Client, create, get, post
from tests.unit.api.test_events import token

RUNBOOKS = json.loads((files("hascheduler.api.ui") / "static" / "runbooks.json").read_text(encoding="utf-8"))
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def sound(**changed: Any) -> Known:
    """Return a cluster in which all is well, with changed fields of it, of its cluster and of its gauges."""
    view = StandingView()
    cluster = replace(
        view.cluster(), quarantine=[], quarantined=0, last_check=LastCheck(NOW, {"overdue": 0}), differing=[]
    )
    gauges = replace(view.gauges(), unable={}, waited_ms={"default": 1_000})
    parts: dict[str, Any] = {"cluster": cluster, "gauges": gauges}
    for name in [name for name in changed if "__" in name]:
        part, _, field = name.partition("__")
        parts[part] = replace(parts[part], **{field: changed.pop(name)})
    return Known(**{"now": NOW, "failed": FailedJobs([], complete=True), **parts, **changed})


def paused(**more: Any) -> StandingPause:
    return StandingPause(id=EVERYTHING, rev=0, since_ms=WallMs(NOW - HOUR), by="ops", because="a move", **more)


def failed(*ago_ms: int, complete: bool = True, definition: str = "resize") -> FailedJobs:
    jobs = [FailedJob(f"j{ago}", definition, "acme", "t", None, None, "E: 7", NOW - ago) for ago in ago_ms]
    return FailedJobs(jobs, complete)


def failing(*times: int, late: int = 0) -> ScheduleTrouble:
    worst = sorted((-count, f"s{place}") for place, count in enumerate(times))[:3]
    return ScheduleTrouble(len(times), worst, [f"l{place}" for place in range(late)])


def test_a_sound_cluster_is_well_and_says_what_was_checked() -> None:
    health = health_of(sound())
    assert (health.state, health.title, health.problems, health.unchecked) == ("good", "All is well", [], [])
    assert health.checked == [rule.checked for rule in RULES]
    assert health.text == "Scheduling goes on: replica-1 has led for 0s, and 1 of 1 replica is alive."
    assert health.counts.model_dump() == {"failed_jobs": 0, "failing_schedules": 0, "late_schedules": 0}


OTHER = make_replica("replica-2.bb", name="replica-2", ready=False, zone_data="2000a")
OWN = StandingView().cluster().replicas[0]
LEASE = StandingView().cluster().lease
[(P1, _, _)] = StandingView().cluster().processors
ROWS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"cluster__lease": None}, "page", "leader", "No replica leads"),
    ({"cluster__leading": False, "now": NOW + DAY}, "page", "leader", "No replica leads"),
    ({"gauges__broker_accepting": False}, "page", "broker", "no job starts"),
    (
        {
            "gauges__leading": False,
            "cluster__replicas": [OWN.model_copy(update={"id": "replica-1.aa", "broker_accepting": False})],
        },
        "page",
        "broker",
        "no job starts",
    ),
    ({"gauges__processors": {"live": 0}}, "page", "processors", "3 jobs wait, and no processor is alive"),
    (
        {"gauges__processors": {"live": 0}, "gauges__jobs": {"pending": 1}},
        "page",
        "processors",
        "1 job waits, and no processor is alive",
    ),
    ({"gauges__processors": {"live": 0, "draining": 1}}, "page", "processors", "all processors drain"),
    ({"failed": failed(MINUTE, 2 * HOUR)}, "page", "failed_jobs", "2 jobs failed for good in the last 24 h: 2 resize."),
    ({"failed": failed(2 * HOUR)}, "ticket", "failed_jobs", "1 job failed for good in the last 24 h"),
    ({"failed": failed(2 * HOUR, complete=False)}, "ticket", "failed_jobs", "At least 1 job failed for good"),
    ({"schedules": failing(late=5)}, "page", "late_schedules", "5 schedules are late: l0, l1, l2 and 2 more."),
    ({"schedules": failing(1, 2)}, "ticket", "failing_schedules", "2 schedules fail: s1, s0."),
    ({"schedules": failing(1, 2, 3, 1)}, "page", "failing_schedules", "4 schedules fail: s2, s1, s0 and 1 more."),
    ({"cluster__last_check": LastCheck(NOW, {"overdue": 2})}, "ticket", "findings", "found 2 overdue"),
    ({"cluster__last_check": LastCheck(NOW, {"cursor_ahead": 1})}, "page", "findings", "fired ahead of time"),
    ({"cluster__pause": paused()}, "ticket", "pause", "Everything is paused"),
    ({"cluster__pause": paused(schedules_only=True)}, "ticket", "pause", "All schedules are paused"),
    ({"replicas_expected": 3}, "ticket", "replicas", "1 of 3 replicas are alive"),
    (
        {"cluster__replicas": [OWN, OTHER], "cluster__silent": {OTHER.id}},
        "ticket",
        "replicas",
        "1 of 2 replicas are alive",
    ),
    ({"cluster__replicas": [OWN, OTHER]}, "ticket", "readiness", "Replica replica-2 is not ready"),
    (
        {"failovers": [make_failover(deciding_at_ms=NOW - MINUTE), make_failover(cause=Cause.FIRST)]},
        "ticket",
        "leadership",
        "changed once in the last 10 minutes",
    ),
    ({"gauges__stream_lag_ms": 61_000}, "ticket", "stream", "1m1s behind"),
    ({"gauges__loop_age_ms": 60_500}, "ticket", "loop", "for 1m."),
    ({"cluster__processors": [(P1, 0, False)]}, "ticket", "lost_processors", "stopped without a word: p-1"),
    ({"gauges__unable": {"not_consuming": 2}}, "ticket", "unable_processors", "2 live processors do not consume"),
    ({"gauges__unable": {"resting": 1}}, "ticket", "unable_processors", "1 live processor did not start"),
    (
        {"cluster__drains": {"p-1": paused().model_copy(update={"id": drain_id("p-1")})}},
        "ticket",
        "drained_processors",
        "1 processor is drained: p-1",
    ),
    ({"gauges__unschedulable": 1}, "ticket", "unschedulable", "1 job can't run on any live processor"),
    (
        {"gauges__waited_ms": {"slow": 7_200_500, "b": 7_000_000}},
        "ticket",
        "waits",
        "up to 2h although slots are free: slow, b.",
    ),
    ({"cluster__differing": ["replica-2.bb"]}, "ticket", "mirrors", "of replica-2 differ"),
    (
        {"cluster__replicas": [OWN, OTHER.model_copy(update={"ready": True}), make_replica("r", zone_data="2000b")]},
        "ticket",
        "zone_data",
        "time-zone data differ",
    ),
    ({"cluster__quarantined": 2}, "ticket", "quarantine", "2 documents can't be read"),
]


@pytest.mark.parametrize(("changed", "severity", "rule", "words"), ROWS, ids=[f"{row[2]}: {row[3]}" for row in ROWS])
def test_each_trouble_is_told_once_with_how_urgent_it_is(
    changed: Mapping[str, Any], severity: str, rule: str, words: str
) -> None:
    health = health_of(sound(**changed))
    [problem] = [each for each in health.problems if each.rule == rule]
    assert {each.rule for each in health.problems} <= {rule, "readiness"}
    assert (problem.severity, words in problem.text) == (severity, True), problem.text
    assert health.state == ("critical" if severity == "page" else "warning")
    assert health.title.startswith(health.problems[0].text.partition(": ")[0].removesuffix("."))
    assert problem.runbook is None or RUNBOOKS[problem.runbook]
    assert next(each.checked for each in RULES if each.name == rule) in health.checked, "it was looked at"


def test_every_rule_has_a_row() -> None:
    assert {row[2] for row in ROWS} == {rule.name for rule in RULES}


@pytest.mark.parametrize(
    ("changed", "left_out", "unchecked"),
    [
        ({"failed": Unread("no answer in 2 s")}, {"failed_jobs"}, {"Failed jobs": "no answer in 2 s"}),
        ({"failed": failed(complete=False)}, {"failed_jobs"}, {"Failed jobs": "there are too many"}),
        ({"failovers": Unread("refused")}, {"leadership"}, {"Leadership": "refused"}),
        (
            {"schedules": Unread("no answer in 2 s")},
            {"failing_schedules", "late_schedules"},
            {"Late schedules": "no answer in 2 s", "Failing schedules": "no answer in 2 s"},
        ),
        ({"cluster__last_check": None}, {"findings"}, {}),
        ({"gauges__wait_bound_ms": None}, {"waits"}, {}),
        ({"gauges__leading": False}, {"broker"}, {}),
    ],
)
def test_what_was_not_looked_at_is_not_called_right(
    changed: Mapping[str, Any], left_out: set[str], unchecked: Mapping[str, str]
) -> None:
    health = health_of(sound(**changed))
    assert {rule.name for rule in RULES if rule.checked not in health.checked} == left_out
    assert [each.rule for each in health.unchecked] == [*unchecked]
    assert all(each.reason.startswith(unchecked[each.rule]) for each in health.unchecked)
    assert health.state == ("unknown" if unchecked else "good")
    assert (health.counts.failed_jobs is None) == ("failed_jobs" in left_out)


def test_a_replica_that_is_not_ready_calls_nothing_right_that_its_mirror_tells() -> None:
    health = health_of(sound(unready_reason="reading the collections", cluster__pause=paused()))
    assert [each.rule for each in health.problems] == ["pause", "readiness"]
    assert {rule.checked for rule in RULES if not rule.of_mirror} <= {*health.checked}
    assert len(health.checked) + len(health.unchecked) == len(RULES)
    assert (health.counts.late_schedules, health.counts.failed_jobs) == (None, 0)


def test_the_title_names_the_worst_and_how_much_there_is_besides() -> None:
    trouble: dict[str, Any] = {"failed": failed(MINUTE), "schedules": failing(3, 1), "gauges__unschedulable": 1}
    assert health_of(sound(**trouble)).title == (
        "1 job failed for good in the last 24 h, 2 schedules fail, and 1 more problem"
    )


def test_a_tenant_is_told_of_no_others() -> None:
    trouble: dict[str, Any] = {"gauges__unschedulable": 9, "replicas_expected": 2}
    health = health_of(
        sound(
            tenant="umbrella",
            gauges__processors={"live": 0},
            gauges__waited_ms={"slow": DAY},
            cluster__quarantined=1,
            cluster__quarantine=[("jobs", "theirs", "state: missing")],
            **trouble,
        )
    )
    assert [each.rule for each in health.problems] == ["processors", "replicas", "quarantine"]
    assert health.problems[0].text == "1 job waits, and no processor is alive."
    assert "theirs" not in health.model_dump_json()


# The route


async def seed_failed(client: Client, world: World, *tenants: str) -> None:
    for place, tenant in enumerate(tenants):
        made = await post(client, "/v1/jobs", {"definition": "log", "tenant": tenant}, 201)
        world.rewrite_job(made["id"], state="failed", error=f"E: {tenant}", finished_at_ms=NOW - MINUTE + place)


async def test_failures_are_read_at_most_every_ten_seconds_and_for_a_tenant_only_its_own(
    client: Client, world: World
) -> None:
    await seed_failed(client, world, "acme", "acme", "umbrella")
    _, acme = await token(client, "acme")
    shown = (await get(client, "/v1/cluster"))["health"]
    [problem] = [each for each in shown["problems"] if each["rule"] == "failed_jobs"]
    assert (shown["counts"]["failed_jobs"], problem["evidence"]) == (3, "log: E: umbrella")
    assert problem["link"]["query"] == {"state": "failed", "failed_since": "2029-12-31T00:00:00.000Z"}
    of_acme = (await client.get("/v1/cluster", headers=acme)).json()["health"]
    assert (of_acme["counts"]["failed_jobs"], "umbrella" in json.dumps(of_acme)) == (2, False)
    world.go_away()
    assert (await get(client, "/v1/cluster"))["health"]["counts"]["failed_jobs"] == 3
    world.clock.mono += EVERY_MS
    shown = (await get(client, "/v1/cluster"))["health"]
    assert (shown["counts"]["failed_jobs"], shown["unchecked"][0]["rule"]) == (None, "Failed jobs")


async def test_a_database_that_does_not_answer_delays_the_verdict_no_longer_than_its_limit(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(recent_reads, "READ_LIMIT_S", 0.01)
    monkeypatch.setattr(world.jobs, "failed", hangs)
    shown = (await get(client, "/v1/cluster"))["health"]
    assert shown["unchecked"] == [{"rule": "Failed jobs", "reason": "no answer in 0.01 s"}]


async def test_schedules_in_trouble_are_told_by_name_since_when_and_of_the_callers_tenant(
    client: Client, world: World
) -> None:
    for name, tenant in (("a", "acme"), ("b", "acme"), ("c", "umbrella")):
        await create(client, name=name, job={"definition": "log", "tenant": tenant})
    world.rewrite(Collection.SCHEDULES, "a", failures=2)
    world.rewrite(Collection.SCHEDULES, "c", failures=5)
    world.clock.now = WallMs(NOW + HOUR)
    _, acme = await token(client, "acme")
    shown = (await get(client, "/v1/cluster"))["health"]
    told = {each["rule"]: each for each in shown["problems"]}
    assert told["failing_schedules"]["text"] == "2 schedules fail: c, a."
    assert told["failing_schedules"]["evidence"] == "c: 5 failures in a row; a: 2 failures in a row"
    assert told["late_schedules"]["text"] == "3 schedules are late: a, b, c."
    assert told["late_schedules"]["since"] == "2030-01-01T01:00:00.000Z"
    world.clock.now, world.clock.mono = WallMs(NOW + 2 * HOUR), EVERY_MS
    of_acme = (await client.get("/v1/cluster", headers=acme)).json()["health"]
    assert of_acme["counts"] == {"failed_jobs": 0, "failing_schedules": 1, "late_schedules": 2}
    again = (await get(client, "/v1/cluster"))["health"]["problems"]
    assert told["late_schedules"] in again, "since it was first seen"


async def test_as_many_replicas_are_expected_as_were_alive_within_the_hour(client: Client, world: World) -> None:
    for point in (1, 2):
        world.view.past.sample(MonoMs(point * 30_000), {}, {"replicas": 3, "running": 0})
    shown = (await get(client, "/v1/cluster"))["health"]
    assert (shown["replicas_expected"], shown["replicas_alive"]) == (3, 1)
    assert "replicas" in {each["rule"] for each in shown["problems"]}


def test_a_replica_on_virtual_time_judges_itself_and_keeps_its_history() -> None:
    def fails(_: JobContext) -> None:
        raise RuntimeError("no")

    with VirtualScheduler() as scheduler:
        scheduler.handle("tick", fails)
        scheduler.put_definition("tick", retry={"attempts": 1})
        trigger = {"type": "interval", "every": "1m", "anchor": "2030-01-01T00:00:00Z"}
        scheduler.add_schedule("minutely", trigger=trigger, job={"definition": "tick"})
        scheduler.advance("5m")
        health = scheduler.request("GET", "/v1/cluster")["health"]
        assert health["title"].startswith("5 jobs failed for good in the last 24 h")
        assert (health["unchecked"], health["counts"]["late_schedules"]) == ([], 0)
        assert scheduler._running is not None
        failed = scheduler._running.cluster.replica.view.history().series()["failed"]
        assert sum(failed) in (4, 5), "the last point may be yet to come"
