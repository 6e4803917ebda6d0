"""Messages, trace headers and events: what is malformed is refused, or is none."""

import json

import orjson
import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.event import (
    is_position,
    next_in_change,
    number_of,
    position,
    seconds_of,
)
from hascheduler.model.message import (
    BUNDLE_MAX,
    MESSAGE_BYTES_MAX,
    Message,
    MessageKind,
    decode_bundle,
    decode_message,
    encode_bundle,
    encode_message,
)
from hascheduler.model.trace import TraceContext, trace_context, trace_from_headers

RUN = {"v": 1, "kind": "run", "job": "fire:tick:1700000000000", "attempt": 1}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null", b"[]", b'"run"', b"1", b"\xff\xfe", b"\x00", b"{" * 4_000, b"[" * 4_000,
        b" " * (MESSAGE_BYTES_MAX + 1),
        b'{"v": 1e999, "kind": "run", "job": "a", "attempt": 1}',
        b'{"v": 1, "kind": "run", "job": "\\ud800", "attempt": 1}',
        b'{"v": 1, "kind": "run", "job": "a", "attempt": ' + b"9" * 4_000 + b"}",
    ],
)  # fmt: skip
def test_a_body_that_is_no_message_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput) as refusal:
        decode_message(body)
    assert len(str(refusal.value)) < 300


WRONG: dict[str, list[object]] = {
    "v": [0, 2, "1", None, [], {}],
    "kind": ["", "RUN", "stop", None, 1, [], {}, ["run"]],
    "job": ["", None, 1, [], {}, "\udfff"],
    "attempt": [0, -1, 1.0, True, "1", None, [], {}, 2**53, 2**64, float("nan")],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_a_wrong_field_is_named(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        decode_message(json.dumps({**RUN, field: value}).encode())
    assert refusal.value.path == ("message", field)


TRACE = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
RUNS = [
    Message(MessageKind.RUN, "01JD", 1),
    Message(MessageKind.RUN, "fire:tick:1700000000000", 7, TRACE),
    Message(MessageKind.RUN, "fire:größer:1", 2**53 - 1),
]


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
        changed(runs=[]),
        changed(runs=[None]),
        changed(runs=[{"job": "01JD"}]),
        changed(runs=[{"job": "01JD", "attempt": 0}]),
        changed(runs=[{"job": "01JD", "attempt": True}]),
        changed(runs=[{"job": {"$gt": ""}, "attempt": 1}]),
        changed(runs=[{"job": "01JD", "attempt": 1}] * (BUNDLE_MAX + 1)),
        changed(runs=[{"job": "j" * 5_000_000, "attempt": 1}]),
    ],
)
def test_a_body_that_is_no_bundle_is_none(body: bytes) -> None:
    assert decode_bundle(body) is None


def test_a_malformed_trace_is_left_out() -> None:
    assert decode_bundle(changed(runs=[{"job": "01JD", "attempt": 1, "traceparent": {"$gt": ""}}])) == [RUNS[0]]


TRACE_ID, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE_ID}-{SPAN}-01"

GARBAGE = [
    None, 7, True, b"00-", GOOD.encode(), ["00"], {"traceparent": GOOD}, "", "00", "-" * 55, "x" * 10_240, GOOD.upper(),
    f" {GOOD}", f"{GOOD}\n", f"{GOOD}-more", GOOD[:-1], f"{GOOD}0",
    f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE_ID}-{'0' * 16}-01", f"ff-{TRACE_ID}-{SPAN}-01", f"00-{TRACE_ID}-{SPAN}-0g",
    f"00_{TRACE_ID}_{SPAN}_01", f"cc-{TRACE_ID}-{SPAN}-01.more", f"cc-{TRACE_ID}-{SPAN}-01-" + "x" * 10_240,
    f"00-{TRACE_ID[:-1]}é-{SPAN}-01", f"00-{TRACE_ID[:-1]}٣-{SPAN}-01",
]  # fmt: skip


@pytest.mark.parametrize("value", GARBAGE, ids=lambda value: repr(value)[:40])
def test_a_malformed_header_is_no_trace(value: object) -> None:
    assert trace_context(value, "vendor=1") is None
    assert trace_from_headers({"traceparent": value}) is None


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ("a=1,b=2", "a=1,b=2"), ("x" * 512, "x" * 512), ("x" * 513, ""), (None, ""), (b"a=1", ""), (7, ""),
        ("a=1\r\nX-Evil: 1", ""), ("a=é", ""), ("", ""),
    ],
)  # fmt: skip
def test_an_unusable_tracestate_is_left_out_and_the_traceparent_stays(state: object, kept: str) -> None:
    found = trace_from_headers({"traceparent": GOOD, "tracestate": state, "other": 1})
    assert found == TraceContext(GOOD, kept)
    assert found.headers() == {"traceparent": GOOD, **({"tracestate": kept} if kept else {})}


def test_positions_sort_as_texts_in_the_order_of_the_stream() -> None:
    in_order = [
        position(9, 4_294_967_295),
        position(10, 1),
        next_in_change(position(10, 1)),
        position(10, 1, 2),
        next_in_change(position(10, 1, 2)),
        position(10, 1, 10),
        position(10, 2),
        position(1_893_456_000, 1),
    ]
    assert in_order == sorted(set(in_order))
    assert all(is_position(text) for text in in_order)
    assert [number_of(text) for text in in_order] == [0, 0, 1, 2, 3, 10, 0, 0]
    assert [seconds_of(text) for text in in_order] == [9, *[10] * 6, 1_893_456_000]


@pytest.mark.parametrize(
    "text",
    ["", "1.2", "0000000001.000000002", "0000000001.0000000002.", "0000000001.0000000002.1", "x000000001.0000000002",
     "0000000001.0000000002\n", "٠000000001.0000000002", " 0000000001.0000000002"],
)  # fmt: skip
def test_malformed_positions_are_none(text: str) -> None:
    assert not is_position(text)
