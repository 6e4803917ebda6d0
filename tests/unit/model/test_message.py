"""The dispatch message: any other body is refused with a reason; bundles come apart into what went into them."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hascheduler.errors import InvalidInput
from hascheduler.model.message import (
    ATTEMPT_MAX,
    BUNDLE_MAX,
    MESSAGE_BYTES_MAX,
    Message,
    MessageKind,
    decode_bundle,
    decode_message,
    encode_bundle,
    encode_message,
)
from hascheduler.model.trace import TraceContext
from hascheduler.model.values.fields import ID_CHARACTERS_MAX
from tests.tiers import examples

JOB_IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=ID_CHARACTERS_MAX)
MESSAGES = st.builds(Message, st.sampled_from(MessageKind), JOB_IDS, st.integers(1, ATTEMPT_MAX))
RUN = {"v": 1, "kind": "run", "job": "fire:tick:1700000000000", "attempt": 1}


def test_the_documented_message_is_read() -> None:
    message = decode_message(b'{"v": 1, "kind": "run", "job": "fire:tick:1700000000000", "attempt": 1}')
    assert message == Message(MessageKind.RUN, "fire:tick:1700000000000", 1)
    assert message.message_id == "fire:tick:1700000000000/1"


@given(MESSAGES)
def test_a_message_is_read_back(message: Message) -> None:
    assert decode_message(encode_message(message)) == message


def test_the_longest_job_id_fits_however_it_is_spelled() -> None:
    for character in ("a", "é", "\x00", "\U0001f600"):
        message = Message(MessageKind.CANCEL, character * ID_CHARACTERS_MAX, ATTEMPT_MAX)
        assert decode_message(encode_message(message)) == message


def test_a_field_of_a_newer_version_is_left_alone() -> None:
    assert decode_message(json.dumps({**RUN, "trace": "abc"}).encode()).attempt == 1


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


@given(MESSAGES, st.data())
@settings(max_examples=examples(200))
def test_a_mutated_message_is_read_or_refused(message: Message, data: st.DataObject) -> None:
    body = bytearray(encode_message(message))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body)))
        cut = data.draw(st.integers(0, 3))
        body[place : place + cut] = data.draw(st.binary(max_size=4))
    read_or_refused(bytes(body))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("v", "kind", "job", "attempt"), JSON)))
@example({})
def test_a_message_of_hostile_values_is_read_or_refused(fields: dict[str, Any]) -> None:
    read_or_refused(json.dumps({"v": 1, "kind": "run", **fields}).encode())


def read_or_refused(body: bytes) -> None:
    try:
        message = decode_message(body)
    except InvalidInput:
        return
    message.job_id.encode()
    assert 1 <= message.attempt <= ATTEMPT_MAX


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
