"""Replicas of the previous release and of this one side by side: equal mirrors, and each takes over from the other."""

from collections.abc import Mapping
from typing import Any

import pytest

from hascheduler.model.documents.token import encode_token
from hascheduler.model.token import digest_of, session_id
from tests.factories import NOW, make_token
from tests.system.processes import eventually
from tests.system.upgrade.fleet import SCHEDULES, Fleet
from tests.system.upgrade.releases import Release

pytestmark = [pytest.mark.timeout(600)]

LATER = "2090-01-01T00:00:00Z"


async def _both(fleet: Fleet, previous: Release, present: Release) -> None:
    fleet.release = previous
    await fleet.replica("old")
    fleet.release = present
    await fleet.replica("new")


async def test_each_release_takes_over_from_the_other_and_applies_its_entries_again(
    fleet: Fleet, previous: Release, present: Release
) -> None:
    releases = {"old": previous, "new": present}
    await _both(fleet, previous, present)
    await fleet.processor("worker")
    for name, every in SCHEDULES.items():
        await fleet.schedule(name, every)
    taken_over = dict.fromkeys(releases, 0)
    term = 0
    async with fleet.load():
        # Four rounds, and a few more where a slow machine has made one lead that was not the next.
        for _ in range(8):
            leader, term = await fleet.leader(not_in_term=term)
            await fleet.goes_on(5)
            await leader.kill()
            successor, _ = await fleet.leader(not_in_term=term)
            taken_over[successor.name] += 1
            fleet.release = releases[leader.name]
            await fleet.replica(leader.name)
            if min(taken_over.values()) == 2:
                break
        await fleet.goes_on(5)
    assert min(taken_over.values()) == 2
    for name in releases:
        # The newest entry of a journal is one that its leader had not yet seen come back.
        assert sum(line["reapplied"] for line in fleet.said(name, "leading")) > 0
    await fleet.assert_nothing_was_lost(8)


async def test_both_releases_have_equal_mirrors_and_show_each_others_writes(
    fleet: Fleet, previous: Release, present: Release
) -> None:
    await _both(fleet, previous, present)
    for by, other in (("old", "new"), ("new", "old")):
        job = await _written(fleet, by, "POST", "/v1/jobs", _job(by))
        # Asked again at the other one it is the same job.
        assert (await _written(fleet, other, "POST", "/v1/jobs", _job(by)))["id"] == job["id"]
        for noun, body in _nouns(by).items():
            await _written(fleet, by, "POST" if noun == "schedules" else "PUT", _path(noun, by), body)
    for by, other in (("old", "new"), ("new", "old")):
        for noun, body in _nouns(other).items():
            await _written(fleet, by, "PUT", f"/v1/{noun}/{noun}-{other}", body | CHANGES[noun])
    # Only one of the two mirrors what the database says of itself.
    assert (await fleet.migrated())["schema_version"]["after"] == 1
    # As a replica of this release leaves a job that was submitted with a trace.
    await fleet.database.jobs.update_many({}, {"$set": {"trace": f"00-{'a' * 32}-{'b' * 16}-01"}})
    # As a login at a replica of this release leaves it.
    session = make_token(session_id("token-1", "5b1e"), session_of=digest_of("token-1"), expires_at_ms=NOW)
    await fleet.database.tokens.insert_one(encode_token(session))

    async def equal() -> bool:
        old, new = await fleet.cluster("old"), await fleet.cluster("new")
        return bool(old["digest"] == new["digest"] and old["counts"] == new["counts"] and old["counts"]["pending"] == 2)

    await eventually(equal, "equal digests")
    for noun in ("jobs", *_nouns("old")):
        old, new = [(await fleet.http.get(f"{_url(fleet, name)}/v1/{noun}")).json() for name in ("old", "new")]
        assert len(old["items"]) >= 2
        assert not old.get("unreadable")
        for before, after in zip(old["items"], new["items"], strict=True):
            assert before == _as_shown_before(after, before)
    for name in ("old", "new"):
        assert (await fleet.cluster(name))["quarantine"] == []
    fleet.assert_nothing_set_aside()


async def test_a_release_sets_schedules_aside_whose_triggers_it_does_not_know_and_leads_on(
    fleet: Fleet, previous: Release, present: Release
) -> None:
    await _a_new_one_beside_the_old_leader(fleet, previous, present)
    days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    await _written(fleet, "new", "PUT", "/v1/calendars/each-day", {"weekdays": days})
    on_days = {"type": "interval", "every": "250ms", "calendars": {"only": ["each-day"]}}
    # The nearest one is at most 20 s ahead.
    several = {"type": "any", "of": [_cron("* * * * *"), _cron("* * * * * 20"), _cron("* * * * * 40")]}
    unknown = {"on-days": on_days, "several": several}
    for name, trigger in unknown.items():
        body = {"name": name, "trigger": trigger, "job": {"definition": "log", "target": name}}
        await _written(fleet, "new", "POST", "/v1/schedules", body)
    await _sets_aside(fleet, *unknown)
    assert [fleet.nominal_times(name) for name in unknown] == [[], []]
    await fleet.replicas["old"].terminate()

    async def all_fire() -> bool:
        return len(fleet.nominal_times("on-days")) > 4 and len(fleet.nominal_times("several")) > 0

    await eventually(all_fire, "the release that reads them fires them")


def _cron(expression: str) -> dict[str, Any]:
    return {"type": "cron", "expression": expression}


async def test_a_release_without_graphs_sets_schedules_of_several_jobs_aside_and_leads_on(
    fleet: Fleet, previous: Release, present: Release
) -> None:
    await _a_new_one_beside_the_old_leader(fleet, previous, present)
    jobs = [
        {"ref": "first", "definition": "log", "target": "a"},
        {"ref": "last", "definition": "log", "target": "b", "depends_on": ["first"]},
    ]
    body = {"name": "graph", "trigger": {"type": "interval", "every": "250ms"}, "jobs": jobs}
    await _written(fleet, "new", "POST", "/v1/schedules", body)
    await _sets_aside(fleet, "graph")
    assert not any(job.startswith("fire:graph:") for job in fleet.effects())
    await fleet.replicas["old"].terminate()

    async def fires_graphs() -> bool:
        done = set(fleet.effects())
        last = {job for job in done if job.startswith("fire:graph:") and not job.endswith(".first")}
        assert {f"{job}.first" for job in last} <= done
        return len(last) > 4

    await eventually(fires_graphs, "the release that reads it fires it")


async def _a_new_one_beside_the_old_leader(fleet: Fleet, previous: Release, present: Release) -> None:
    """With a processor, and a schedule that both know."""
    fleet.release = previous
    await fleet.replica("old")
    await fleet.leader()
    fleet.release = present
    await fleet.replica("new")
    await fleet.processor("worker")
    await fleet.schedule("tick", "250ms")


async def _sets_aside(fleet: Fleet, *schedules: str) -> None:
    """The release before sets these ``schedules`` aside, by name, and fires the other one on."""

    async def are_set_aside() -> bool:
        rows = (await fleet.cluster("old"))["quarantine"]
        return sorted((row["collection"], row["id"]) for row in rows) == [("schedules", name) for name in schedules]

    await eventually(are_set_aside, "the release before sets them aside")
    assert (await fleet.cluster("new"))["quarantine"] == []
    fired = len(fleet.nominal_times("tick"))

    async def fires_on() -> bool:
        return len(fleet.nominal_times("tick")) > fired + 4

    await eventually(fires_on, "the other schedule fires on")


def _as_shown_before(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """``after`` without what the release before does not show, of its verdicts, retries, triggers and templates too."""
    shown = {name: after[name] for name in before}
    for part in {"counts", "retry", "trigger", "job"} & before.keys():
        shown[part] = {name: after[part][name] for name in before[part]}
    return shown


CHANGES: dict[str, dict[str, Any]] = {
    "definitions": {"default_cost": "4s"},
    "lanes": {"weight": 4},
    "tenants": {"max_running": 6},
    "schedules": {"overlap": "skip"},
}


def _job(by: str) -> dict[str, Any]:
    job = {"definition": f"definitions-{by}", "target": f"target-{by}", "payload": {"of": by}}
    return {**job, "not_before": LATER, "labels": {"by": by}, "idempotency_key": f"key-{by}"}


def _nouns(by: str) -> dict[str, dict[str, Any]]:
    trigger = {"type": "once", "at": LATER}
    return {
        "definitions": {"default_cost": "2s", "conflict_group": "git", "tier": 3},
        "lanes": {"weight": 3},
        "tenants": {"max_running": 5},
        "schedules": {"name": f"schedules-{by}", "trigger": trigger, "job": {"definition": "log", "target": by}},
    }


def _path(noun: str, by: str) -> str:
    return f"/v1/{noun}" if noun == "schedules" else f"/v1/{noun}/{noun}-{by}"


def _url(fleet: Fleet, name: str) -> str:
    return fleet.replicas[name].url


async def _written(fleet: Fleet, by: str, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in body.items() if name != "idempotency_key"}
    headers = {"Idempotency-Key": body["idempotency_key"]} if "idempotency_key" in body else {}
    answer = await fleet.http.request(method, _url(fleet, by) + path, json=fields, headers=headers)
    assert answer.status_code < 300, answer.text
    content: dict[str, Any] = answer.json()
    return content
