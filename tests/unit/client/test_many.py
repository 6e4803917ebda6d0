"""Many jobs at once: submitted in as few requests as they fit into, listed, changed."""

from datetime import UTC, datetime

import pytest

from hascheduler.client import Changed, InvalidInput, Refused, bodies
from hascheduler.client.bodies import split_jobs
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import NOW, World
from tests.unit.client.faces import Face


async def test_each_of_many_is_submitted_or_refused_by_itself(face: Face, world: World) -> None:
    jobs = [
        {"ref": "fetch", "definition": "fetch", "payload": None},
        {"definition": "index", "depends_on": ["ref:fetch"]},
        {"definition": "a/b"},
    ]
    done = await face.ask.submit_many(jobs, idempotency_key="import-1")
    assert [(one.status, one.job) for one in done.results[:2]] == [(201, "job:0001"), (201, "job:0002")]
    assert [one.problem.errors[0].path for one in done.refused] == ["definition"]
    assert world.job("job:0002")["waits_for"] == ["job:0001"]
    assert [world.job("job:0001")["batch"]] == list(done.batches)
    again = await face.ask.submit_many(jobs, idempotency_key="import-1")
    assert [one.status for one in again.results] == [200, 200, 422]


async def test_what_a_file_holds_is_sent_as_it_is(face: Face) -> None:
    jobs = [{"definition": None}, 5, {"definition": "log"}]
    answer = await face.ask.submit_batch(jobs, idempotency_key="import-1")
    assert [one["status"] for one in answer["results"]] == [422, 422, 201]
    assert answer["results"][0]["problem"]["title"]


async def test_too_many_for_one_request_go_in_several(
    face: Face, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "REQUEST_JOBS_MAX", 2)
    done = await face.ask.submit_many([{"definition": "log"}] * 5, idempotency_key="import-1")
    assert (len(done.batches), len(done.results), done.refused) == (3, 5, ())
    await face.ask.submit_many([{"definition": "log"}] * 5, idempotency_key="import-1")
    assert len(world.everything()[Collection.JOBS]) == 5
    assert await face.ask.submit_many([]) == type(done)((), ())


async def test_a_key_that_is_too_long_for_the_last_request_is_told_before_the_first(
    face: Face, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "REQUEST_JOBS_MAX", 2)
    with pytest.raises(InvalidInput, match="can't be a key"):
        await face.ask.submit_many([{"definition": "log"}] * 3, idempotency_key="k" * 255)
    assert world.everything()[Collection.JOBS] == []


async def test_all_pages_of_a_list_are_read(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("synchronous", "asynchronous"):
        monkeypatch.setattr(f"hascheduler.client.{kind}.asking.PAGE", 2)
    for n in range(5):
        await face.ask.submit("log", target=str(n), labels={"odd": str(n % 2)})
    assert [job.target for job in await face.listed()] == ["4", "3", "2", "1", "0"]
    assert [job.target for job in await face.listed(labels={"odd": "1"}, state="pending")] == ["3", "1"]
    assert await face.listed(state="failed") == []


async def test_all_that_match_are_changed_however_many_requests_it_takes(
    face: Face, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.api.jobs.all_that_match.CHANGED_MAX", 1)
    await face.ask.submit_many([{"definition": "log", "labels": {"team": "a"}}] * 3)
    assert await face.ask.cancel_where(dry_run=True, definition="log") == Changed(3, True, 0, 0, True)
    assert (await face.ask.reprioritize_where(9, labels={"team": "a"}, dry_run=True)).matched == 3
    world.rewrite(Collection.JOBS, "job:0001", state="running")
    heard: list[int] = []
    changed = await face.ask.cancel_where(labels={"team": "a"}, progress=lambda so_far: heard.append(so_far.changed))
    assert changed == Changed(3, True, 2, 1, True)
    assert heard == sorted(heard)
    assert len(heard) > 1
    world.rewrite(Collection.JOBS, "job:0002", state="failed", finished_at_ms=NOW)
    assert await face.ask.retry_where(definition="log") == Changed(1, True, 1, 0, True)
    assert (await face.ask.reprioritize_where(9, definition="log")).changed == 1
    assert [world.job(f"job:000{n}")["priority"] for n in (1, 2)] == [5, 9]


async def test_everything_there_is_is_never_meant(face: Face) -> None:
    with pytest.raises(Refused, match="filter: names nothing"):
        await face.ask.cancel_where()


def test_jobs_that_name_each_other_stay_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "REQUEST_JOBS_MAX", 2)
    plain = [{"definition": "log"}] * 5
    assert [len(group) for group in split_jobs(plain)] == [2, 2, 1]
    with pytest.raises(InvalidInput, match="3 jobs need 2 requests"):
        split_jobs([{"depends_on": ["ref:a"]}, *plain[:2]])
    assert split_jobs([{"depends_on": ["ref:a"]}, {"depends_on": "?"}]) == [
        [{"depends_on": ["ref:a"]}, {"depends_on": "?"}]
    ]


@pytest.mark.parametrize("payload", [{1, 2}, datetime(2031, 1, 1, tzinfo=UTC), float("nan")])
def test_what_json_cannot_hold_is_in_no_request(payload: object) -> None:
    with pytest.raises(InvalidInput, match="is nothing that JSON can hold"):
        split_jobs([bodies.plain(definition="log", payload=payload)])


def test_large_jobs_fill_a_request_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "REQUEST_BYTES_MAX", 100)
    assert [len(group) for group in split_jobs(["x" * 60] * 3)] == [1, 1, 1]
    with pytest.raises(InvalidInput, match=r"3 requests, and are to be all or none; .* 1\.5 MiB if"):
        split_jobs(["x" * 60] * 3, atomic=True)
