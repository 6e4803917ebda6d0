"""Texts from outside, without their secrets and bounded; spans, instants and resources as people write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.errors import InvalidInput
from hascheduler.model.resources import AMOUNT_MAX, RESOURCE_NAMES_MAX, format_resources, parse_resources
from hascheduler.model.values.instants import (
    LATEST_MS,
    LONGEST_MS,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
)
from hascheduler.model.values.redaction import TRACEBACK_BYTES_MAX, kept_traceback, redacted, redacted_value

TOKEN = "hsk_" + "aB3-_" * 8 + "xyz"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("mongodb://user:pa55@db:27017/?replicaSet=rs0", "mongodb://***@db:27017/?replicaSet=rs0"),
        ("amqps://user:p@55@mq/", "amqps://***@mq/"),
        ("amqp://user:pa/55?#@mq/", "amqp://***@mq/"),
        ("amqp://user@mq/", "amqp://***@mq/"),
        ("two: a://u:p@h and b://u:p@h", "two: a://***@h and b://***@h"),
        ('("amqp://u:p\'5\\"5@h",)', '("amqp://***@h",)'),
        (f"the token {TOKEN} is known", "the token hsk_*** is known"),
        (f"{TOKEN}{TOKEN}", "hsk_***"),
        ("Authorization: Bearer not-one-of-ours", "Authorization: Bearer ***"),
        ("{'authorization': 'bearer abc'}", "{'authorization': 'bearer ***'}"),
        (f"Authorization: Bearer {TOKEN}", "Authorization: Bearer ***"),
    ],
)
def test_secrets_are_removed(text: str, clean: str) -> None:
    assert redacted(text) == clean
    assert redacted(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "", "http://127.0.0.1:8080/v1/jobs", "mongodb://a,b,c/?replicaSet=rs0", "who@example.com",
        "https://example.com/@someone", "see https://example.com/a and mail who@example.com", "a token is demanded",
        "the bearer of this",
    ],
)  # fmt: skip
def test_all_other_text_stays(text: str) -> None:
    assert redacted(text) == text


def test_values_keep_their_form_unless_they_hold_a_secret() -> None:
    class Odd:
        def __str__(self) -> str:
            return "amqp://u:p@h"

    plain = object()
    kept = {"n": 1, "none": None, "list": [1.5, True], "plain": plain, "bytes": b"\xff", "set": frozenset({1})}
    assert redacted_value(kept) == {**kept, "set": (1,)}
    nasty = {TOKEN: [{"uri": ("amqp://u:p@h", 1)}], "bytes": TOKEN.encode(), "odd": Odd(), "error": ValueError(TOKEN)}
    assert redacted_value(nasty) == {
        "hsk_***": [{"uri": ("amqp://***@h", 1)}],
        "bytes": "hsk_***",
        "odd": "amqp://***@h",
        "error": "hsk_***",
    }


LINE = "  File 'mine.py', line 7, in resize\n"


def test_a_short_one_is_kept_whole_and_a_long_one_from_the_beginning_of_a_line() -> None:
    assert kept_traceback(f"Traceback:\n{LINE}ValueError: no\n") == f"Traceback:\n{LINE}ValueError: no"
    kept = kept_traceback(f"Traceback:\n{LINE * 10_000}ValueError: no") or ""
    first, *lines, last = kept.split("\n")
    assert (first, set(lines), last) == ("…", {LINE.rstrip("\n")}, "ValueError: no")
    assert TRACEBACK_BYTES_MAX - 2 * len(LINE) < len(kept.encode()) <= TRACEBACK_BYTES_MAX


@pytest.mark.parametrize("filler", ["x", "ä", "x ", "\n", "\ud800", "\U0001f642"])
def test_none_exceeds_the_limit(filler: str) -> None:
    for count in (TRACEBACK_BYTES_MAX // 4, TRACEBACK_BYTES_MAX - 3, 5 * TRACEBACK_BYTES_MAX):
        kept = kept_traceback(f"begin {filler * count} end") or ""
        assert len(kept.encode()) <= TRACEBACK_BYTES_MAX
        assert kept.endswith("end")


@pytest.mark.parametrize("limit", [TRACEBACK_BYTES_MAX, 4 * TRACEBACK_BYTES_MAX])
def test_no_cut_leaves_half_a_secret(limit: int) -> None:
    secret = "postgres://me:hunter2-hunter2@there/"
    for after in range(limit - len(secret) - 8, limit + 8):
        text = f"{'before ' * 20_000}{secret} {'y' * (after - 1)}"
        assert "hunter2" not in (kept_traceback(text) or "")


@pytest.mark.parametrize(
    ("written", "span_ms"),
    [
        ("200ms", 200),
        ("1m30s", 90_000),
        ("1.5s", 1_500),
        ("1w2d3h4m5s6ms", 788_645_006),
        ("0s", 0),
        (1.5, 1_500),
        (0.001, 1),
        (LONGEST_MS // 1_000, LONGEST_MS),
    ],
)
def test_a_duration_is_read_in_milliseconds(written: str | float, span_ms: int) -> None:
    assert parse_duration(written) == span_ms


@pytest.mark.parametrize(
    "written",
    [
        "", " ", "1", "s", "-1s", "+1s", "1 s", " 1s", "1s ", "1s,", "1S", "1e3s", "1.s", ".5s", "1y", "١s", "1s1",
        "0.0001ms", "0.0004s", "9" * 13 + "s", "999999999999w", "1w" * 10_000, "1m30", "nan", "inf",
        -1, -0.001, -0.0001, 0.0001, 1e300, float("nan"), float("inf"), -float("inf"), 10**400, -(10**400), True, False,
        LONGEST_MS, None, [], {}, b"1s",
    ],
)  # fmt: skip
def test_what_is_not_a_duration_is_refused_in_few_words(written: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_duration(written, ("trigger", "every"))
    assert refusal.value.path == ("trigger", "every")
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("written", "at_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.0019Z", 1),
        ("2030-01-31 09:30:00+00:00", 1_896_082_200_000),
        ("2030-01-31T10:30:00+01:00", 1_896_082_200_000),
        ("2030-01-31T09:30+00:00", 1_896_082_200_000),
        ("1969-12-31T23:00:00-01:00", 0),
        ("2099-12-31T23:59:59.999Z", LATEST_MS - 1),
    ],
)
def test_an_instant_is_read_in_milliseconds(written: str, at_ms: int) -> None:
    assert parse_instant(written) == at_ms


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("2030-01-31T09:30:00", "no UTC offset"),
        ("2030-01-31", "date without a time"),
        ("1969-12-31T23:59:59Z", "not between 1970 and 2099"),
        ("2100-01-01T00:00:00Z", "not between 1970 and 2099"),
        ("0001-01-01T00:00:00+14:00", "not between 1970 and 2099"),
        ("2030-02-30T00:00:00Z", "not an instant"),
        ("2030-01-31T09:30:00Europe/Paris", "not an instant"),
        ("09:30:00Z", "not an instant"),
        ("", "not an instant"),
        ("\ud800", "not an instant"),
    ],
)
def test_what_names_no_instant_is_refused_with_the_reason(written: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as refusal:
        parse_instant(written, ("trigger", "at"))
    assert refusal.value.path == ("trigger", "at")


NAMES = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,62}\Z").filter(lambda name: name != "slots")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpu", "'cpu' is not a resource amount"),
        ("cpu=8,", "'' is not a resource amount"),
        ("cpu=", "cpu: ''"),
        ("cpu=1.5", "cpu: '1.5'"),
        ("cpu=²", "cpu: '²'"),
        (f"cpu={AMOUNT_MAX + 1}", f"cpu: {AMOUNT_MAX + 1}"),
        ("cpu=" + "9" * 5_000, "cpu: '999"),
        ("cpu=1,cpu=2", "'cpu' is named twice"),
        ("slots=3", "'slots' is not a resource name"),
        (",".join(f"r{n}=1" for n in range(RESOURCE_NAMES_MAX + 1)), "17 resources"),
    ],
)
def test_a_malformed_list_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_resources(text, ("--resources",))
    assert refused.value.path == ("--resources",)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300


AMOUNTS = st.dictionaries(NAMES, st.integers(1, AMOUNT_MAX), max_size=RESOURCE_NAMES_MAX)


@given(st.integers(0, LONGEST_MS), st.integers(0, LATEST_MS - 1), AMOUNTS)
def test_what_is_written_is_read_back(span_ms: int, at_ms: int, amounts: dict[str, int]) -> None:
    assert parse_duration(format_duration(span_ms)) == span_ms
    assert parse_instant(format_instant(at_ms)) == at_ms
    assert dict(parse_resources(format_resources(amounts))) == amounts
