"""Bundles are decoded into the messages that were encoded; any other body is no bundle."""

import orjson
import pytest

from hascheduler.model.message import BUNDLE_MAX, Message, MessageKind, decode_bundle, encode_bundle, encode_message
from hascheduler.model.trace import TraceContext

TRACE = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
RUNS = [
    Message(MessageKind.RUN, "01JD", 1),
    Message(MessageKind.RUN, "fire:tick:1700000000000", 7, TRACE),
    Message(MessageKind.RUN, "fire:größer:1", 2**53 - 1),
]


def test_a_bundle_comes_apart_into_what_went_into_it() -> None:
    assert decode_bundle(encode_bundle(RUNS)) == RUNS


def test_the_largest_bundle_can_be_read() -> None:
    runs = [Message(MessageKind.RUN, f"{number:03}" + "ü" * 317, 2**53 - 1, TRACE) for number in range(BUNDLE_MAX)]
    assert decode_bundle(encode_bundle(runs)) == runs


def changed(**fields: object) -> bytes:
    return orjson.dumps({**orjson.loads(encode_bundle(RUNS)), **fields})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        encode_message(RUNS[0]),
        encode_bundle(RUNS)[:-1],
        changed(v=2),
        changed(kind="parcel"),
        changed(runs=None),
        changed(runs=[]),
        changed(runs={}),
        changed(runs=[None]),
        changed(runs=["01JD"]),
        changed(runs=[{"job": "01JD"}]),
        changed(runs=[{"job": "01JD", "attempt": 0}]),
        changed(runs=[{"job": "01JD", "attempt": True}]),
        changed(runs=[{"job": "", "attempt": 1}]),
        changed(runs=[{"job": {"$gt": ""}, "attempt": 1}]),
        changed(runs=[{"job": "01JD", "attempt": 1}] * (BUNDLE_MAX + 1)),
        changed(runs=[{"job": "j" * 5_000_000, "attempt": 1}]),
    ],
)
def test_a_body_that_is_no_bundle_is_none(body: bytes) -> None:
    assert decode_bundle(body) is None


def test_a_malformed_trace_is_left_out() -> None:
    assert decode_bundle(changed(runs=[{"job": "01JD", "attempt": 1, "traceparent": {"$gt": ""}}])) == [RUNS[0]]
