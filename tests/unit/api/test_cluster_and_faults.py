"""The replica's report of itself and the cluster, and its answers to failures of the database and to defects."""

import httpx
import pytest
from structlog.testing import capture_logs

from hascheduler.model.processor import Rest
from hascheduler.model.values.instants import WallMs, format_instant
from tests.factories import NOW
from tests.unit.api.doubles import World
from tests.unit.api.requests import TICK, check_problem


async def test_the_cluster_is_shown(client: httpx.AsyncClient) -> None:
    shown = (await client.get("/v1/cluster")).json()
    assert shown["leader"] == {
        "holder": "replica-1.aa",
        "term": 7,
        "endpoint": "127.0.0.1:9",
        "since": "2030-01-01T00:00:00.000Z",
    }
    assert (shown["replica_id"], shown["leading"], shown["ready"]) == ("replica-1.aa", True, True)
    assert (shown["journal_seq"], shown["stream_lag_ms"]) == (41, 3)
    assert [replica["name"] for replica in shown["replicas"]] == ["replica-1"]
    assert shown["counts"] == {"pending": 1, "schedules": 2}
    assert shown["quarantine"] == [{"collection": "jobs", "id": "bad", "reason": "state: missing"}]
    assert shown["findings"] == {"at": "2030-01-01T00:00:00.000Z", "counts": {"overdue": 2}}
    assert shown["mirrors_differ"] == ["replica-2.bb"]


async def test_a_replica_whose_beats_have_stopped_is_neither_alive_nor_ready(
    client: httpx.AsyncClient, world: World
) -> None:
    [before] = (await client.get("/v1/cluster")).json()["replicas"]
    assert (before["alive"], before["ready"]) == (True, True)
    world.view.silent = ["replica-1.aa"]
    [after] = (await client.get("/v1/cluster")).json()["replicas"]
    assert (after["alive"], after["ready"]) == (False, False)


async def test_a_lease_that_was_given_back_has_no_leader(client: httpx.AsyncClient, world: World) -> None:
    world.view.holder = ""
    assert (await client.get("/v1/cluster")).json()["leader"] is None


async def test_processors_are_shown(client: httpx.AsyncClient) -> None:
    item = (await client.get("/v1/processors")).json()["items"][0]
    assert (item["id"], item["definitions"], item["slots"]) == ("p-1.bb", ["log", "sleep"], 8)
    assert (item["occupied"], item["alive"], item["resources"]) == (2, True, {"cpu": 8})
    assert (item["consuming"], item["rest"]) == (True, None)


async def test_it_is_shown_which_processors_get_no_jobs_and_why(client: httpx.AsyncClient, world: World) -> None:
    world.view.rests = {"p-1.bb": Rest(3, 1, WallMs(NOW + 5_000))}
    world.view.consuming = False
    item = (await client.get("/v1/processors")).json()["items"][0]
    assert item["consuming"] is False
    assert item["rest"] == {"missed": 3, "until": format_instant(WallMs(NOW + 5_000))}


async def test_health_gives_the_reason_for_503(client: httpx.AsyncClient, world: World) -> None:
    assert (await client.get("/livez")).json() == {"alive": True, "reason": ""}
    assert (await client.get("/readyz")).status_code == 200
    world.view.ready = world.view.alive = False
    assert (await client.get("/livez")).status_code == 503
    answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "reason": "the mirror is not complete yet"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/schedules", None),
        ("POST", "/v1/schedules", TICK),
        ("PUT", "/v1/schedules/tick", TICK),
        ("PATCH", "/v1/schedules/tick", {}),
        ("DELETE", "/v1/schedules/tick", None),
        ("POST", "/v1/schedules/tick/pause", None),
        ("POST", "/v1/schedules/tick/resume", {"catch_up": True}),
        ("POST", "/v1/schedules/tick/trigger", None),
        (
            "POST",
            "/v1/schedules/tick/backfill",
            {"from": "2029-12-31T00:00:00Z", "to": "2029-12-31T00:00:01Z"},
        ),
        ("GET", "/v1/schedules/tick/preview", None),
        ("GET", "/v1/schedules/tick/verdicts", None),
        ("PUT", "/v1/definitions/log", {}),
        ("POST", "/v1/jobs", {"definition": "log"}),
        ("GET", "/v1/jobs", None),
        ("POST", "/v1/jobs/job:1/cancel", None),
    ],
)
async def test_a_database_that_is_away_is_503_with_a_time_to_come_again(
    client: httpx.AsyncClient, world: World, method: str, path: str, body: object
) -> None:
    world.go_away()
    answer = await client.request(method, path, json=body)
    check_problem(answer, 503, None)
    assert int(answer.headers["retry-after"]) > 0
    assert ("unknown" in answer.json()["detail"]) == (method != "GET")


async def test_a_defect_reveals_nothing(client: httpx.AsyncClient, world: World) -> None:
    world.view.broken = True
    with capture_logs() as logs:
        answer = await client.get("/v1/cluster")
    check_problem(answer, 500, None)
    assert "secret" not in answer.text
    assert [line["event"] for line in logs] == ["request_failed"]
