"""Secrets are removed from texts, and nothing else."""

import pytest

from hascheduler.model.values.redaction import redacted, redacted_value

TOKEN = "hsk_" + "aB3-_" * 8 + "xyz"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("mongodb://user:pa55@db:27017/?replicaSet=rs0", "mongodb://***@db:27017/?replicaSet=rs0"),
        ("mongodb+srv://user:pa55@db/x failed", "mongodb+srv://***@db/x failed"),
        ("amqps://user:p@55@mq/", "amqps://***@mq/"),
        ("amqp://user:pa/55?#@mq/", "amqp://***@mq/"),
        ("amqp://user@mq/", "amqp://***@mq/"),
        ("amqp://:pa55@mq/", "amqp://***@mq/"),
        ("two: a://u:p@h and b://u:p@h", "two: a://***@h and b://***@h"),
        ('("amqp://u:p\'5\\"5@h",)', '("amqp://***@h",)'),
        (f"the token {TOKEN} is known", "the token hsk_*** is known"),
        (f"{TOKEN}{TOKEN}", "hsk_***"),
        ("hsk_short", "hsk_***"),
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


def test_a_value_nested_too_deeply_becomes_a_text() -> None:
    deep: object = TOKEN
    for _ in range(20):
        deep = [deep]
    assert TOKEN not in str(redacted_value(deep))
