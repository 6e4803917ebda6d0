"""Texts from outside: secrets are removed from them, and tracebacks and quoted values are bounded."""

import pytest

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
