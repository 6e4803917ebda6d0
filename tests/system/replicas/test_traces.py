"""One trace from the caller through the API, the leader and the broker to the handler, over real processes."""

import aio_pika

from hascheduler.model.documents.job import new_job_document
from hascheduler.model.message import Message, MessageKind, encode_message
from hascheduler.rabbitmq.connection import DISPATCH_EXCHANGE
from tests.contract.test_messages import HOSTILE
from tests.factories import make_job
from tests.system.processes import Processes, eventually
from tests.unit.telemetry.collector import CollectedSpan, Collector, collecting

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HANDLERS = "tests.system.replicas.traced_handlers"


def tracing_to(url: str) -> dict[str, str]:
    return {
        "HASCHEDULER_TRACING": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }


async def spans_of(collector: Collector, trace: str, count: int) -> list[CollectedSpan]:
    async def look() -> list[CollectedSpan] | None:
        found = collector.of(trace)
        return found if len(found) >= count else None

    found = await eventually(look, f"{count} spans of {trace}")
    assert len(found) == count, [span.name for span in found]
    return found


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
        replica = await processes.replica("one", **tracing_to(collector.url))
        processor = await processes.processor("worker", HANDLERS, slots=8, **tracing_to(collector.url))
        await processes.put("/v1/definitions/traced", {"retry": {"attempts": 2, "backoff": "0s"}})
        body = {"definition": "traced", "payload": {"succeeds_in": 2}}
        job_id = await submitted(processes, body, traceparent=f"00-{TRACE}-{CALLER}-01")
        spans = await spans_of(collector, TRACE, 7)
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
            assert (run.failed, run.attributes.get("error.type")) == (
                (attempt == 1),
                "LookupError" if attempt == 1 else None,
            )
            line = next(line for line in processes.logged("at_work", "worker") if line["attempt"] == attempt)
            assert (line["job"], line["trace_id"], line["span_id"]) == (job_id, TRACE, own.id)
            assert line["processor"].startswith("worker.")
        assert all(line["replica"].startswith("one.") for line in processes.lines("one"))
        # What is in the queue of a process goes out before it ends.
        last = await submitted(processes, {"definition": "traced-thread"}, traceparent=f"00-{'1' * 32}-{CALLER}-01")
        await processes.in_state(last, "succeeded")
        assert (await processor.terminate(), await replica.terminate()) == (0, 0)
        names = [span.name for span in collector.of("1" * 32)]
        assert sorted(names) == [
            "attempt traced-thread",
            "dispatch traced-thread",
            "in a thread",
            "submit traced-thread",
        ]


async def test_a_fired_job_begins_a_trace(processes: Processes) -> None:
    with collecting() as collector:
        await processes.replica("one", **tracing_to(collector.url))
        await processes.processor("worker", HANDLERS, slots=8, **tracing_to(collector.url))
        await processes.schedule("tick", "1s", definition="traced-thread")

        async def first() -> CollectedSpan | None:
            return next((span for span in collector.spans if span.name == "in a thread"), None)

        spans = await spans_of(collector, (await eventually(first, "the handler of a fire")).trace, 4)
        fire, dispatch = one(spans, "fire traced-thread"), one(spans, "dispatch traced-thread")
        run, own = one(spans, "attempt traced-thread"), one(spans, "in a thread")
        assert (fire.parent, dispatch.parent, run.parent, own.parent) == ("", fire.id, dispatch.id, run.id)
        assert {span.attributes["hascheduler.job.schedule"] for span in (fire, dispatch, run)} == {"tick"}


async def test_without_a_broker_the_job_itself_says_where_its_attempt_belongs(processes: Processes) -> None:
    with collecting() as collector:
        more = {**tracing_to(collector.url), "HASCHEDULER_TRANSPORT": "mongo"}
        await processes.replica("one", **more)
        await processes.processor("worker", HANDLERS, slots=8, **more)
        await submitted(processes, {"definition": "traced-thread"}, traceparent=f"00-{TRACE}-{CALLER}-01")
        spans = await spans_of(collector, TRACE, 3)
        assert one(spans, "attempt traced-thread").parent == one(spans, "submit traced-thread").id
        assert not [name for name in one(spans, "attempt traced-thread").attributes if name.startswith("messaging.")]


async def test_whatever_stands_in_the_headers_of_its_message_a_job_runs(processes: Processes, amqp_url: str) -> None:
    # The replica makes the collections and goes, so that nobody else sends anything.
    await (await processes.replica("one")).terminate()
    with collecting() as collector:
        await processes.processor("worker", HANDLERS, slots=8, **tracing_to(collector.url))
        registered = await processes.database.processors.find_one({})
        assert registered is not None
        connection = await aio_pika.connect(amqp_url)
        exchange = await (await connection.channel()).get_exchange(DISPATCH_EXCHANGE)
        for number, headers in enumerate(HOSTILE):
            job = new_job_document(make_job(f"job-{number}", definition="traced-thread"))
            mine = {"state": "dispatched", "attempt": 1, "processor": registered["_id"], "dispatched_at_ms": 1}
            await processes.database.jobs.insert_one({**job, **mine})
            body = encode_message(Message(MessageKind.RUN, f"job-{number}", 1))
            await exchange.publish(aio_pika.Message(body, headers=dict(headers)), routing_key=registered["_id"])
        await connection.close()

        async def all_succeeded() -> bool:
            return await processes.database.jobs.count_documents({"state": "succeeded"}) == len(HOSTILE)

        await eventually(all_succeeded, "all of them succeed")

        async def all_told() -> bool:
            return len([span for span in collector.spans if span.name == "attempt traced-thread"]) == len(HOSTILE)

        await eventually(all_told, "a span of each")
        assert {span.parent for span in collector.spans if span.name == "attempt traced-thread"} == {""}


async def test_a_collector_that_is_away_is_told_of_once_and_keeps_nobody(processes: Processes) -> None:
    away = {**tracing_to("http://127.0.0.1:1"), "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    replica = await processes.replica("one", **away)
    processor = await processes.processor("worker", HANDLERS, slots=8, **away)
    for _ in range(5):
        job_id = await submitted(processes, {"definition": "traced-thread"})
        await processes.in_state(job_id, "succeeded")

    async def both_told() -> bool:
        return all(processes.logged("spans_not_exported", name) for name in ("one", "worker"))

    await eventually(both_told, "both have said that spans are lost")
    assert (await processor.terminate(), await replica.terminate()) == (0, 0)
    assert [len(processes.logged("spans_not_exported", name)) for name in ("one", "worker")] == [1, 1]
    strangers = {line["logger"] for line in processes.lines("one", "worker")}
    assert not [name for name in strangers if not name.startswith(("hascheduler.", "processors."))]
