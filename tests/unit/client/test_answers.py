"""The SDK as a package, its answers (JSON with typed attributes), and events, which are resumed at the next replica."""

import json
import runpy
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider

from hascheduler.client import (
    Answer,
    Definition,
    JobEvent,
    Refused,
    RetryPolicy,
    Scheduler,
    Unavailable,
)
from hascheduler.client.answers import CronResponse, ScheduleResponse
from hascheduler.client.asynchronous import events as asynchronous_events
from tests.unit.api.doubles import the_routes
from tests.unit.client.faces import answered_by, scheduler_over

SCHEDULE = ScheduleResponse(
    {
        "name": "nightly",
        "next_at": "2030-01-02T02:30:00Z",
        "paused_at": None,
        "trigger": {"type": "cron", "jitter": "1m30s", "exclude": [{"from": "2030-01-01T00:00:00+01:00"}]},
        "colour": "red",
    }
)
SHOWN = {
    "name": "log", "rev": 4, "max_concurrency": 3, "colour": "red",
    "key_limits": [{"key": "target", "max_concurrency": 2, "rate_limit": None, "mood": 2}],
    "retry": {"attempts": 7, "lost_attempts": 3, "backoff": "2s", "factor": 2, "max": "1m", "jitter": True, "mood": 1},
}  # fmt: skip


def test_attributes_are_instants_spans_and_answers_and_the_json_stays_as_it_was_sent() -> None:
    assert SCHEDULE.next_at == datetime(2030, 1, 2, 2, 30, tzinfo=UTC)
    assert SCHEDULE.trigger.jitter == timedelta(seconds=90)
    assert isinstance(SCHEDULE.trigger, CronResponse)
    assert SCHEDULE.trigger.exclude[0].from_ == datetime(2029, 12, 31, 23, tzinfo=UTC)
    assert (SCHEDULE["next_at"], SCHEDULE["colour"], SCHEDULE.fields) == ("2030-01-02T02:30:00Z", "red", SCHEDULE)
    assert json.loads(json.dumps(SCHEDULE)) == SCHEDULE


def test_a_union_of_a_newer_release_is_an_answer_still() -> None:
    later = ScheduleResponse({"trigger": {"type": "moon", "phase": "full"}})
    assert (type(later.trigger), later.trigger["phase"]) == (Answer, "full")


@pytest.mark.parametrize("value", ["soon", 5, None, []])
def test_what_can_not_be_read_is_told_with_its_name(value: Any) -> None:
    with pytest.raises(AttributeError, match="'created_at' of the answer is"):
        _ = ScheduleResponse({"created_at": value}).created_at


class OneReplica:
    def __init__(self, shown: dict[str, Any]) -> None:
        self.shown = shown
        self.sent: list[Any] = []

    async def put(self, name: str, **changes: Any) -> Any:
        definitions = scheduler_over(self.answer).definitions
        read = await definitions.get(name)
        await definitions.put(read.model_copy(update=changes), if_match=read.rev)
        return self.sent[-1]

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.content:
            self.sent.append(json.loads(request.content))
        return httpx2.Response(200, json=self.shown)


async def test_an_edit_keeps_what_a_newer_replica_added() -> None:
    body = await OneReplica(SHOWN).put("log", max_concurrency=4)
    assert (body["max_concurrency"], body["colour"]) == (4, "red")
    assert (body["retry"]["attempts"], body["retry"]["mood"]) == (7, 1)
    assert body["key_limits"] == [{"key": "target", "max_concurrency": 2, "mood": 2}]
    assert "name" not in body
    assert "rev" not in body


async def test_a_put_tells_an_older_replica_of_no_field_that_was_not_set() -> None:
    replica = OneReplica({"name": "log", "rev": 1})
    definition = Definition(name="log", timeout_ms=300_000, retry=RetryPolicy(attempts_max=7))
    await scheduler_over(replica.answer).definitions.put(definition)
    assert replica.sent == [{"timeout": "5m", "retry": {"attempts": 7}}]
    assert await replica.put("log") == {}


def test_what_follows_from_other_files_is_up_to_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The types from the OpenAPI document, the synchronous scheduler from the asynchronous one."""
    monkeypatch.setattr(sys, "argv", ["generate-client", "--check"])
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr("hascheduler.api.app.create_routes", the_routes)  # which is made already
    script = runpy.run_path("scripts/generate-client")
    assert (script["main"](), capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_request_is_part_of_the_callers_span(kind: str) -> None:
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, json={"answer": "ok"})

    face = answered_by(kind, answer, "http://one")
    with TracerProvider(shutdown_on_exit=False).get_tracer("caller").start_as_current_span("mine") as span:
        await face.ask.retry("job:1")
    await face.ask.retry("job:1")
    within, without = asked
    context = span.get_span_context()
    assert within.headers["traceparent"][3:52] == f"{context.trace_id:032x}-{context.span_id:016x}"
    assert "traceparent" not in without.headers


# Events

ONE = 'id: 1.1\nevent: submitted\ndata: {"job": "a"}\n\n'
TWO = ': a comment\n\nid: 1.2\nevent: failed\ndata: {"job": "b"}\n\n'
CUT_OFF = 'id: 1.3\nevent: succeeded\ndata: {"jo'

PAUSE_S = 0.001

Answers = list[str | Exception | int]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchronous_events, "_AGAIN_S", PAUSE_S)


def answering(answers: Answers) -> tuple[Callable[[httpx2.Request], httpx2.Response], list[httpx2.URL]]:
    asked: list[httpx2.URL] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url)
        said = answers.pop(0) if answers else httpx2.ConnectError("away")
        match said:
            case str():
                return httpx2.Response(200, text=said, headers={"Content-Type": "text/event-stream"})
            case int():
                return httpx2.Response(said, json={"type": "x", "detail": "no", "status": said, "title": "x"})
            case _:
                raise said

    return answer, asked


async def followed(
    answers: Answers, patience: float = 0, **filter: Any
) -> tuple[list[JobEvent], list[httpx2.URL], Any]:
    answer, asked = answering(answers)
    events: list[JobEvent] = []
    try:
        async for event in scheduler_over(answer, "http://a", "http://b", patience=patience).events.follow(**filter):
            events.append(event)  # noqa: PERF401  # those before the error count
    except (Unavailable, Refused) as error:
        return events, asked, error
    raise AssertionError("the events have ended")


async def test_what_is_cut_off_comes_again_whole_from_the_next_replica() -> None:
    events, asked, _ = await followed([ONE + CUT_OFF, httpx2.ReadError("cut"), TWO], patience=3 * PAUSE_S)
    assert [event.id for event in events] == ["1.1", "1.2"]
    assert [(url.host, url.params.get("after")) for url in asked[:3]] == [("a", None), ("a", "1.1"), ("b", "1.1")]


async def test_where_nothing_matched_for_long_it_goes_on_from_where_the_replica_had_come() -> None:
    _, asked, _ = await followed([ONE + ": still here\nid: 1.9\n\n: still here\n\n"], patience=3 * PAUSE_S)
    assert [url.params.get("after") for url in asked[:2]] == [None, "1.9"]


async def test_one_connection_says_when_there_is_no_more_and_is_not_tried_again() -> None:
    answer, asked = answering(["retry: 2000\n\n" + ONE + ": still here\nid: 1.9\n\n" + CUT_OFF])
    stream = scheduler_over(answer).events.stream(types=["submitted"], after="1.0")
    events = [event async for event in stream]
    assert events == [JobEvent("1.1", "submitted", {"job": "a"}), JobEvent("1.9", "caught_up", {})]
    assert [url.params.multi_items() for url in asked] == [[("type", "submitted"), ("after", "1.0")]]


async def test_pictures_of_the_cluster_come_over_one_connection_and_half_a_one_is_none() -> None:
    history = 'event: history\ndata: {"series": {}}\n\n'
    whole = ['event: picture\ndata: {"numbers": {"pending": 1}}\n\n', 'event: picture\ndata: {"numbers": {}}\n\n']
    answer, asked = answering(["retry: 1000\n\n" + history + "".join(whole) + "event: picture\n"])
    pictures = [picture async for picture in scheduler_over(answer).cluster.live()]
    assert pictures == [{"numbers": {"pending": 1}}, {"numbers": {}}]
    assert [url.path for url in asked] == ["/v1/cluster/live"]


async def test_what_is_refused_is_not_tried_again() -> None:
    _, asked, error = await followed([422])
    assert (isinstance(error, Refused), len(asked)) == (True, 1)


def test_the_synchronous_scheduler_follows_too() -> None:
    answer, _ = answering([ONE + TWO])
    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        events = Scheduler("http://a", http=http, patience=0).events.follow()
        assert [next(events).type, next(events).type] == ["submitted", "failed"]
