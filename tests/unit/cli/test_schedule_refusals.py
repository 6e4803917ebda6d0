"""What a user did wrong with a schedule is one line and status 2."""

import pytest

from tests.unit.cli.invoking import Replica

_TICK = ("schedule", "add", "tick", "--every", "1s", "--definition", "log")


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["--cron", "* * *"], "trigger.expression: "),
        (["--cron", "61 * * * *"], "trigger.expression: "),
        (["--cron", "0 0 30 2 *"], "trigger.expression: "),
        (["--cron", "* " * 5_120], "trigger.expression: "),
        (["--cron", "@daily", "--timezone", "Mars/X"], "trigger.timezone: "),
        (["--cron", "@daily", "--timezone", "../../etc/passwd"], "trigger.timezone: "),
        (["--at", "9999-01-01T00:00:00Z"], "trigger.at: "),
        (["--at", "2016-12-31T23:59:60Z"], "trigger.at: "),
        (["--at", "2029-01-01T00:00:00Z"], "trigger.at: "),
        (["--every", "1s", "--start-at", "2032-01-01T00:00:00Z", "--end-at", "2031-01-01T00:00:00Z"], "trigger.end_at"),
        (["--every", "1s", "--grace", "-1s"], "misfire.grace: "),
        (["--every", "1s", "--jitter", "2s"], "trigger.jitter: "),
        (["--every", "1s", "--payload", '"${nobody}"', "--render"], "job.payload: "),
        (["--every", "1s", "--payload", "{"], "--payload: "),
        (["--every", "1s", "--payload", "NaN"], "--payload: "),
        (["--every", "1s", "--payload", "1e999"], "body: "),
        (["--every", "1s", "--payload", "@/nowhere"], "--payload: "),
        (["--every", "1s", "--priority", "11"], "job.priority: "),
        (["--every", "1s", "--priority", "high"], "--priority: "),
        (["--every", "1s", "--label", "team"], "--label: "),
        (["--every", "1s", "--at", "2031-01-01T00:00:00Z"], "trigger.of.0.every: "),
        ([], "--cron: "),
    ],
)
async def test_bad_input_is_one_line_and_status_2(replica: Replica, arguments: list[str], where: str) -> None:
    ended = await replica.run("schedule", "add", "bad", *arguments, "--definition", "log")
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"hascheduler: {where}")


async def test_a_definition_must_be_named(replica: Replica) -> None:
    ended = await replica.run("schedule", "add", "bad", "--every", "1s")
    assert (ended.status, ended.err.startswith("hascheduler: --definition: missing")) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["get", "nobody"],
        ["preview", "nobody"],
        ["edit", "nobody", "--every", "1s"],
        ["pause", "nobody"],
        ["resume", "nobody"],
        ["trigger", "nobody"],
        ["verdicts", "nobody"],
        ["delete", "nobody", "--yes"],
    ],
)
async def test_what_is_not_there_is_one_line_and_status_2(replica: Replica, arguments: list[str]) -> None:
    ended = await replica.run("schedule", *arguments)
    assert (ended.status, ended.out, ended.err) == (2, "", f"hascheduler: no schedule '{arguments[1]}'\n")


@pytest.mark.parametrize("name", ["../definitions", "a/b", "", "a b", "\u00fc", "x" * 129])
async def test_what_cannot_be_a_name_is_one_line_and_status_2(replica: Replica, name: str) -> None:
    ended = await replica.run("schedule", "get", name)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("hascheduler: NAME: ")


async def test_a_taken_name_is_one_line_and_status_2(replica: Replica) -> None:
    await replica.done(*_TICK)
    ended = await replica.run(*_TICK)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "there is a schedule 'tick' already" in ended.err
