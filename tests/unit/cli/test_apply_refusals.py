"""Files that ask for what can't be: one line, status 2, and nothing written."""

from pathlib import Path

import pytest

from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica

_LATER = "2031-01-01T00:00:00Z"


def schedule(trigger: str, job: str = "{definition: log}", more: str = "") -> str:
    return f"kind: Schedule\nname: bad\ntrigger: {trigger}\njob: {job}\n{more}"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (schedule("{type: cron, expression: '* * *'}"), "trigger.expression"),
        (schedule("{type: cron, expression: '61 * * * *'}"), "trigger.expression"),
        (schedule("{type: cron, expression: '0 0 30 2 *'}"), "trigger.expression"),
        (schedule(f"{{type: cron, expression: '{'* ' * 5_120}'}}"), "trigger.expression"),
        (schedule("{type: cron, expression: '@daily', timezone: Mars/X}"), "trigger.timezone"),
        (schedule("{type: cron, expression: '@daily', timezone: ../../etc/passwd}"), "trigger.timezone"),
        (schedule("{type: once, at: 9999-01-01T00:00:00Z}"), "trigger.at"),
        (schedule("{type: once, at: 2016-12-31T23:59:60Z}"), "trigger.at"),
        (schedule(f"{{type: interval, every: 1s, start_at: {_LATER}, end_at: 2030-06-01T00:00:00Z}}"), "end_at"),
        (schedule("{type: interval, every: 1s, jitter: 2s}"), "trigger.jitter"),
        (schedule("{type: interval, every: -1s}"), "trigger.every"),
        (schedule("{type: interval, every: -1}"), "trigger.every"),
        (schedule(f"{{type: times, at: [{', '.join([_LATER] * 10_001)}]}}"), "trigger.at"),
        (schedule(f"{{type: times, at: [{', '.join([_LATER] * 1_000_000)}]}}"), "larger than 4 MiB"),
        (schedule("{type: once, at: 2029-01-01T00:00:00Z}"), "trigger.at"),
        (schedule("{type: interval, every: 1s}", more="misfire: {grace: -1s}"), "misfire.grace"),
        (schedule("{type: interval, every: 1s}", more="misfire: {grace: -1}"), "misfire.grace"),
        (schedule("{type: interval, every: 1s}", "{definition: log, render: true, payload: '${x}'}"), "job.payload"),
        (schedule("{type: interval, every: 1s}", "{definition: log, payload: .nan}"), "job.payload"),
    ],
    ids=[
        "three fields", "minute 61", "30 February", "10 KiB of cron", "Mars", "a path for a zone", "year 9999",
        "a leap second", "an end before the start", "jitter beyond the interval", "a negative text",
        "a negative number", "10,001 times", "a million times", "the past", "a negative grace",
        "a negative number of grace", "a placeholder that there is not", "no number",
    ],
)  # fmt: skip
async def test_bad_input_is_one_line_and_status_2(
    replica: Replica, world: World, tmp_path: Path, text: str, where: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    before = world.everything()
    ended = await replica.run("apply", "-f", str(file), "--yes")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert where in ended.err
    assert len(ended.err) < 1_000
    assert world.everything() == before
