"""Metrics, health and traces of real processes tell what the database and the handlers know."""

import os
import socket
from pathlib import Path

import httpx2
import pytest

from hascheduler.embedded.children import free_port, start_daemon
from tests.system.processes import Processes, eventually
from tests.unit.telemetry.collector import CollectedSpan, collecting
from tests.unit.telemetry.scraping import Scrape

HANDLERS = "tests.system.replicas.handlers"
SUBMITTED = 12
FIRES = 6


async def test_the_figures_are_those_of_the_run(processes: Processes) -> None:
    count = processes.database.jobs.count_documents
    one, two = await processes.together("one", "two")
    worker = await processes.processor("worker", "hascheduler.handlers.log", HANDLERS)
    leader, term = await processes.leader()
    follower = two if leader is one else one
    # It comes to its end by itself: a fire that meets a deletion is decided, and lost.
    trigger = {"type": "interval", "every": "200ms", "max_fires": FIRES}
    await processes.post("/v1/schedules", {"name": "tick", "trigger": trigger, "job": {"definition": "log"}})
    for number in range(SUBMITTED):
        await processes.post("/v1/jobs", {"definition": "log", "target": f"t{number}", "tenant": "acme"})
    # Tried three times: two attempts fail.
    await processes.put("/v1/definitions/traced", {"retry": {"attempts": 5, "backoff": "50ms"}})
    await processes.post("/v1/jobs", {"definition": "traced", "payload": {"succeeds_in": 3}})
    all = FIRES + SUBMITTED + 1

    async def all_ends_counted() -> Scrape | None:
        scraped = await processes.metrics(leader.url)
        return scraped if scraped.total("hascheduler_attempts_total") == all + 2 else None

    led = await eventually(all_ends_counted, "the leader has seen every attempt end")
    assert await count({"state": "succeeded"}) == await count({}) == all
    assert led.of("hascheduler_verdicts_total", verdict="fired") == FIRES
    assert led.of("hascheduler_decisions_total", kind="fire") == FIRES
    assert led.of("hascheduler_decisions_total", kind="dispatch") == all + 2
    assert led.of("hascheduler_attempts_total", definition="log", outcome="succeeded") == all - 1
    assert led["hascheduler_attempts_lost_total"] == led["hascheduler_dispatch_conflicts_total"] == 0
    assert led.of("hascheduler_schedule_to_start_seconds_count", definition="traced") == 1
    assert led.of("hascheduler_publishes_total", outcome="confirmed") >= all + 2
    assert (led["hascheduler_is_leader"], led["hascheduler_term"]) == (1, term)
    followed = await processes.metrics(follower.url)
    for name in ("hascheduler_verdicts_total", "hascheduler_attempts_total", "hascheduler_decisions_total"):
        assert followed.total(name) == 0, f"{name} on a replica that never led"
    # `post` asks the first replica.
    posted = (await processes.metrics(one.url)).of(
        "hascheduler_http_requests_total", method="POST", route="/v1/jobs", status="201"
    )
    assert posted == SUBMITTED + 1
    worked = await processes.metrics(worker.url)
    assert worked.of("hascheduler_handler_duration_seconds_count", definition="traced") == 3


Answers = dict[str, tuple[int, str]]
YES = (200, "")
WAITS = (503, "waiting for MongoDB")
FOLLOWS = (503, "this replica does not lead")


async def probed(port: int) -> Answers | None:
    """The status and the reason of each path that is there; None while nobody listens."""
    found: Answers = {}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        for path in ("/livez", "/readyz", "/leaderz"):
            try:
                answer = await http.get(path)
            except httpx2.TransportError:
                return None
            if answer.status_code != httpx2.codes.NOT_FOUND:
                found[path] = answer.status_code, answer.json()["reason"]
        assert "hascheduler_build_info" in (await http.get("/metrics")).text
    return found


@pytest.mark.parametrize(
    ("arguments", "waiting"),
    [
        (["serve"], {"/livez": YES, "/readyz": WAITS, "/leaderz": FOLLOWS}),
        (["processor", "hascheduler.handlers.log"], {"/livez": YES, "/readyz": WAITS}),
    ],
)
async def test_who_waits_for_the_database_lives_is_not_ready_and_ends_on_sigterm(
    arguments: list[str], waiting: Answers, tmp_path: Path
) -> None:
    port = free_port()
    environment = {
        **os.environ,
        "HASCHEDULER_HTTP_PORT": "0",
        "HASCHEDULER_HEALTH_PORT": str(port),
        "HASCHEDULER_MONGODB_URI": f"mongodb://127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=500",
    }
    child = await start_daemon("waits", arguments, tmp_path / "log", environment=environment)
    try:
        assert await eventually(lambda: probed(port), "it answers") == waiting
        assert await child.terminate() == 0
    finally:
        if child.running:
            await child.kill()


async def test_a_port_that_is_taken_is_one_line_and_the_callers_fault(processes: Processes) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, _, error = await processes.command("serve", HASCHEDULER_HEALTH_PORT=str(taken.getsockname()[1]))
    [line] = error.splitlines()
    assert (status, line.startswith("hascheduler: HASCHEDULER_HEALTH_PORT")) == (2, True), line


TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


async def submitted(processes: Processes, body: object, **headers: str) -> str:
    answer = await processes.http.post(f"{processes.any_url()}/v1/jobs", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def one(spans: list[CollectedSpan], name: str, attempt: int | None = None) -> CollectedSpan:
    number = "hascheduler.job.attempt"
    found = [span for span in spans if span.name == name and attempt in (None, span.attributes.get(number))]
    assert len(found) == 1, (name, attempt, [span.name for span in spans])
    return found[0]


async def test_a_callers_trace_reaches_its_handler_and_a_retry_is_more_of_it(processes: Processes) -> None:
    with collecting() as collector:
        tracing = {"HASCHEDULER_TRACING": "otlp", "OTEL_BSP_SCHEDULE_DELAY": "100"}
        processes.environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **tracing}
        replica = await processes.replica("one")
        processor = await processes.processor("worker", HANDLERS)
        await processes.put("/v1/definitions/traced", {"retry": {"attempts": 2, "backoff": "0s"}})
        body = {"definition": "traced", "payload": {"succeeds_in": 2}}
        job_id = await submitted(processes, body, traceparent=f"00-{TRACE}-{CALLER}-01")

        async def all_spans() -> list[CollectedSpan] | None:
            found = collector.of(TRACE)
            return found if len(found) >= 7 else None

        spans = await eventually(all_spans, "the spans of both attempts")
        assert len(spans) == 7, [span.name for span in spans]
        submit = one(spans, "submit traced")
        assert (submit.parent, submit.service) == (CALLER, "hascheduler")
        for attempt in (1, 2):
            dispatch, run = one(spans, "dispatch traced", attempt), one(spans, "attempt traced", attempt)
            own = next(span for span in spans if span.parent == run.id)
            assert (dispatch.parent, run.parent) == (submit.id, dispatch.id)
            assert (own.name, own.scope, own.service) == ("in a coroutine", "somebody's application", run.service)
            assert (dispatch.service, run.service) == ("hascheduler", "hascheduler-processor")
            assert {span.attributes["hascheduler.job.id"] for span in (submit, dispatch, run)} == {job_id}
            assert {span.attributes["messaging.system"] for span in (dispatch, run)} == {"rabbitmq"}
            assert dispatch.attributes["hascheduler.term"] == 1
            failure = (True, "LookupError") if attempt == 1 else (False, None)
            assert (run.failed, run.attributes.get("error.type")) == failure
            line = next(line for line in processes.logged("at_work", "worker") if line["attempt"] == attempt)
            assert (line["job"], line["trace_id"], line["span_id"]) == (job_id, TRACE, own.id)
            assert line["processor"].startswith("worker.")
        assert all(line["replica"].startswith("one.") for line in processes.lines("one"))
        # What is in the queue of a process goes out before it ends.
        last = await submitted(processes, {"definition": "traced-thread"}, traceparent=f"00-{'1' * 32}-{CALLER}-01")
        await processes.in_state(last, "succeeded")
        assert (await processor.terminate(), await replica.terminate()) == (0, 0)
        names = sorted(span.name for span in collector.of("1" * 32))
        assert names == ["attempt traced-thread", "dispatch traced-thread", "in a thread", "submit traced-thread"]
