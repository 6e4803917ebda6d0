"""Events through the SDK: parsed, resumed at the next replica, and given up when no replica speaks."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from hascheduler.client import JobEvent, Refused, Scheduler, Unavailable
from hascheduler.client.asynchronous import events as asynchronous_events
from tests.unit.client.faces import scheduler_over

ONE = 'id: 1.1\nevent: submitted\ndata: {"job": "a"}\n\n'
TWO = ': a comment\n\nid: 1.2\nevent: failed\ndata: {"job": "b"}\n\n'
CUT_OFF = 'id: 1.3\nevent: succeeded\ndata: {"jo'

PAUSE_S = 0.001

Answers = list[str | Exception | int]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchronous_events, "_AGAIN_S", PAUSE_S)


def answering(answers: Answers) -> tuple[Callable[[httpx.Request], httpx.Response], list[httpx.URL]]:
    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        said = answers.pop(0) if answers else httpx.ConnectError("away")
        match said:
            case str():
                return httpx.Response(200, text=said, headers={"Content-Type": "text/event-stream"})
            case int():
                return httpx.Response(said, json={"type": "x", "detail": "no", "status": said, "title": "x"})
            case _:
                raise said

    return answer, asked


async def followed(answers: Answers, patience: float = 0, **filter: Any) -> tuple[list[JobEvent], list[httpx.URL], Any]:
    answer, asked = answering(answers)
    events: list[JobEvent] = []
    try:
        async for event in scheduler_over(answer, "http://a", "http://b", patience=patience).events.follow(**filter):
            events.append(event)  # noqa: PERF401  # those before the error count
    except (Unavailable, Refused) as error:
        return events, asked, error
    raise AssertionError("the events have ended")


async def test_what_is_cut_off_comes_again_whole_from_the_next_replica() -> None:
    events, asked, _ = await followed([ONE + CUT_OFF, httpx.ReadError("cut"), TWO], patience=3 * PAUSE_S)
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
    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        events = Scheduler("http://a", http=http, patience=0).events.follow()
        assert [next(events).type, next(events).type] == ["submitted", "failed"]
