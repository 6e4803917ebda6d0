"""``hascheduler schedule …`` and ``hascheduler verdicts`` against the real API."""

from pathlib import Path
from typing import Any

import pytest

from hascheduler.client import requests
from hascheduler.clock import SystemClock
from hascheduler.dispatch.decisions import ResetCursor
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Replica
from tests.unit.cli.terminal import Terminal

_TICK = ("schedule", "add", "tick", "--every", "1s", "--definition", "log")
_HOURLY = ("--every", "1h", "--definition", "log")


async def test_everything_that_an_option_says_arrives(replica: Replica) -> None:
    await replica.done(
        "schedule", "add", "nightly",
        "--cron", "30 2 * * *", "--timezone", "Europe/Paris", "--jitter", "5s", "--max-fires", "7",
        "--start-at", "2030-02-01T00:00:00Z", "--end-at", "2031-02-01T00:00:00Z",
        "--exclude", "2030-12-24T00:00:00Z/2030-12-27T00:00:00Z",
        "--definition", "repack", "--target", "demo", "--payload", '{"day": "${nominal_date}"}', "--render",
        "--priority", "9", "--lane", "slow", "--fairness-key", "team-a", "--tenant", "acme", "--mode", "on_demand",
        "--resources", "cpu=2,gpu=1",
        "--grace", "5m", "--catch-up", "all", "--catch-up-limit", "10", "--overlap", "skip",
        "--pause-after-failures", "3", "--label", "team=a", "--label", "why=a=b", "--paused",
    )  # fmt: skip
    shown = await replica.json("schedule", "get", "nightly")
    assert shown["trigger"] == {
        "type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris", "jitter": "5s", "max_fires": 7,
        "start_at": "2030-02-01T00:00:00.000Z", "end_at": "2031-02-01T00:00:00.000Z", "calendars": None,
        "exclude": [{"from": "2030-12-24T00:00:00.000Z", "to": "2030-12-27T00:00:00.000Z"}],
    }  # fmt: skip
    assert shown["misfire"] == {"grace": "5m", "catch_up": "all", "limit": 10}
    assert (shown["overlap"], shown["pause_after_failures"], shown["paused"]) == ("skip", 3, True)
    assert shown["labels"] == {"team": "a", "why": "a=b"}
    assert shown["job"] == {
        "definition": "repack", "target": "demo", "payload": {"day": "${nominal_date}"}, "render": True, "priority": 9,
        "lane": "slow", "fairness_key": "team-a", "tenant": "acme", "mode": "on_demand",
        "resources": {"cpu": 2, "gpu": 1}, "expires_in": None,
    }  # fmt: skip


async def test_a_payload_comes_from_a_file_or_standard_input(replica: Replica, tmp_path: Path) -> None:
    (tmp_path / "payload.json").write_text('{"from": "file"}')
    for name, given in (("a", f"@{tmp_path}/payload.json"), ("b", "@-"), ("c", '"text"')):
        await replica.done("schedule", "add", name, *_TICK[3:], "--payload", given, input="[1]")
    listed = await replica.json("schedule", "list")
    assert [item["job"]["payload"] for item in listed["items"]] == [{"from": "file"}, [1], "text"]


async def test_a_list_tells_how_each_stands(replica: Replica, world: World) -> None:
    await replica.done(*_TICK, "--label", "team=a")
    await replica.done("schedule", "add", "once", "--at", "2030-06-01T00:00:00Z", "--definition", "log")
    await replica.done("schedule", "pause", "once", "--because", "the disk is full")
    await world.fire(world.clock.now + 1_000)
    shown = (await replica.done("schedule", "list")).out
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= 80
    shown = (await replica.done("schedule", "list", COLUMNS="120")).out
    for text in ("tick", "every 1s", "active", "1 fired", "paused: the disk is full"):
        assert text in " ".join(shown.split())
    only = (await replica.done("schedule", "list", "--label", "team=a")).out
    assert "tick" in only
    assert "once" not in only


async def test_all_pages_of_a_list_are_shown(replica: Replica, world: World) -> None:
    await replica.done(*_TICK)
    for number in range(201):
        world.database.replace(Collection.SCHEDULES, {**world.schedule(), "_id": f"s{number:03d}"})
    listed = await replica.json("schedule", "list")
    assert [item["name"] for item in listed["items"]] == [*(f"s{number:03d}" for number in range(201)), "tick"]


async def test_an_edit_changes_what_is_named_and_nothing_else(replica: Replica) -> None:
    options = "--jitter 100ms --end-at 2031-01-01T00:00:00Z --label a=1 --label b=2"
    await replica.done(*_TICK, *options.split())
    before = await replica.json("schedule", "get", "tick")
    edit = "schedule edit tick --every 2s --end-at none --label a- --label c=3"
    await replica.done(*edit.split())
    after = await replica.json("schedule", "get", "tick")
    assert after["trigger"] == {**before["trigger"], "every": "2s", "end_at": None}
    assert after["labels"] == {"b": "2", "c": "3"}
    assert (after["rev"], after["job"]) == (before["rev"] + 1, before["job"])


async def test_what_a_change_shows_of_times_is_in_utc_where_that_is_said(replica: Replica) -> None:
    for command, *options in (("add", *_TICK[3:]), ("edit", "--every", "2s"), ("pause",), ("resume",)):
        ended = await replica.done("schedule", command, "tick", *options, "--utc", TZ="Asia/Tokyo", COLUMNS="140")
        assert ("2030-01-01T00:00:0" in ended.out, "JST" in ended.out) == (True, False), command


async def test_triggering_by_hand(replica: Replica, world: World) -> None:
    await replica.done(*_TICK)
    job = await replica.json("schedule", "trigger", "tick", "--payload", '{"n": 1}')
    assert world.job(job["id"])["payload"] == {"n": 1}
    refused = await replica.run("schedule", "trigger", "tick", "--overlap", "skip")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert job["id"] in refused.err
    once = ("schedule", "trigger", "tick", "--idempotency-key", "k")
    first, again = (await replica.done(*once)).out, (await replica.done(*once)).out
    assert again == first.replace("triggered ", "triggered already: ")


async def test_backfilling(replica: Replica) -> None:
    await replica.done(*_TICK)
    given = ("schedule", "backfill", "tick", "--from", "2029-12-31T23:59:30Z", "--to", "2030-01-01T00:00:00Z")
    assert (await replica.done(*given, "--dry-run")).out.startswith("31 would be created, 0 there already, of 31 times")
    shown = (await replica.done(*given)).out
    assert shown.startswith("31 created")
    assert "… and 11 more" in shown
    assert (await replica.done(*given)).out.startswith("0 created, 31 there already")
    refused = await replica.run(*given[:-1], "2030-01-01T00:00:01Z")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert refused.err.startswith("hascheduler: to: ")


async def test_verdicts_tell_what_came_of_each_time(replica: Replica, world: World) -> None:
    await replica.done(*_TICK)
    now = world.clock.now
    job = await world.fire(now + 1_000)
    await world.pass_over(Verdict.SKIPPED, now + 2_000, because_of=job)
    await world.pass_over(Verdict.COALESCED, now + 3_000, now + 9_000, count=7)
    world.clock.now = WallMs(now + 12_000)
    shown = " ".join((await replica.done("schedule", "verdicts", "tick", COLUMNS="120")).out.split())
    assert "fired 1 skipped 1 missed 0 coalesced 7" in shown
    assert "3 not decided yet since 2030-01-01T00:00:10Z (due)" in shown
    assert f"2030-01-01T00:00:01Z fired pending {job}" in shown
    assert f"2030-01-01T00:00:02Z skipped in the way: {job}" in shown
    assert "2030-01-01T00:00:03Z coalesced × 7 into the next fire – 2030-01-01T00:00:09Z" in shown
    newest = await replica.json("schedule", "verdicts", "tick", "--limit", "1")
    assert [item["verdict"] for item in newest["items"]] == ["coalesced"]
    none = await replica.done("schedule", "verdicts", "tick", "--verdict", "missed")
    assert "No such time was decided yet." in none.out


async def test_deleting_asks_unless_yes_is_given(replica: Replica, world: World) -> None:
    await replica.done(*_TICK)
    refused = await replica.run("schedule", "delete", "tick")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    terminal = Terminal("schedule", "delete", "tick", "--url", replica.url)
    await terminal.until("Delete the schedule tick (every 1s)?")
    terminal.type("n\n")
    assert await terminal.ended() == 0
    assert world.schedule("tick")
    assert (await replica.done("schedule", "delete", "tick", "--yes")).out == "deleted tick\n"
    assert (await replica.run("schedule", "delete", "tick", "--yes")).status == 2


async def test_watching_shows_what_changes_until_it_is_interrupted(replica: Replica) -> None:
    await replica.done(*_TICK)
    terminal = Terminal("schedule", "list", "--watch", "--url", replica.url)
    await terminal.until("tick")
    await replica.done("schedule", "add", "tock", "--every", "2s", "--definition", "log")
    await terminal.until("tock")
    assert await terminal.interrupted() == 130
    assert "Traceback" not in terminal.shown


async def test_an_edit_says_what_it_changed(replica: Replica) -> None:
    """A payload is one value, and not shown at any length."""
    await replica.done("schedule", "add", "tick", "--every", "1s", "--definition", "log")
    edit = ("schedule", "edit", "tick", "--overlap", "skip", "--label", "team=a", "--payload", f'["{"x" * 200}"]')
    shown = (await replica.done(*edit)).out
    assert shown.startswith("schedule tick: changed\n  overlap: allow → skip\n")
    assert f"  job.payload: none → [{'x' * 99}…\n" in shown
    assert "  labels.team: none → a\n" in shown
    assert (await replica.done(*edit)).out.startswith("schedule tick: unchanged\n")
    assert (await replica.done(*edit, "--json")).json["changes"] == []


async def test_a_list_is_of_those_that_match(replica: Replica, world: World) -> None:
    for name in ("nightly", "hourly"):
        await replica.done("schedule", "add", name, "--every", "1s", "--definition", "log")
    await replica.done("schedule", "pause", "hourly")
    await world.pass_over(Verdict.MISSED, NOW + 1_000, name="nightly")
    for options, expected in (
        (["--text", "NIGHT"], ["nightly"]),
        (["--state", "paused"], ["hourly"]),
        (["--state", "paused", "--state", "active"], ["hourly", "nightly"]),
        (["--verdict", "missed"], ["nightly"]),
        (["--tenant", "acme"], []),
    ):
        listed = await replica.json("schedule", "list", *options)
        assert [schedule["name"] for schedule in listed["items"]] == expected


async def test_every_answer_is_printed_in_each_form(replica: Replica) -> None:
    await replica.done(*_TICK)
    for typed, printed in (
        ("schedule list -o name", "tick\n"),
        ("schedule get tick -o name", "tick\n"),
        ("schedule list -o yaml", "kind: Schedule\nname: tick\n"),
        ("schedule get tick -o yaml", "kind: Schedule\nname: tick\n"),
        ("processor list -o name", "p-1\n"),
        ("processor list -o yaml", "definitions:\n"),
        ("cluster -o yaml", "term: 7\n"),
        ("token whoami -o name", "anonymous\n"),
    ):
        assert printed in (await replica.done(*typed.split())).out, typed
    assert (await replica.json("schedule", "get", "tick"))["name"] == "tick"


async def test_all_that_match_are_paused_triggered_and_resumed(replica: Replica, world: World) -> None:
    for name, team in (("nightly-a", "a"), ("nightly-b", "b"), ("hourly", "a")):
        await replica.done("schedule", "add", name, *_HOURLY, "--label", f"team={team}")

    def paused() -> set[str]:
        return {one["_id"] for one in world.everything()["schedules"] if one["paused_at_ms"] is not None}

    asked = ("schedule", "pause", "--text", "night", "--because", "the disk is full")
    assert (await replica.done(*asked, "--dry-run")).out == "would pause 2 schedules\n"
    unasked = await replica.run(*asked)
    assert (unasked.status, "Pause 2 schedules?" in unasked.err, paused()) == (2, True, set())
    assert (await replica.done(*asked, "--yes")).out == "paused 2 schedules\n"
    assert paused() == {"nightly-a", "nightly-b"}
    assert (await replica.done(*asked, "--yes")).out == "There are no such schedules.\n"
    assert (await replica.done("schedule", "trigger", "--label", "team=a", "-y")).out == "triggered 2 schedules\n"
    assert (await replica.done("schedule", "resume", "--all", "--yes")).out == "resumed 2 schedules\n"
    ended = await replica.json("schedule", "pause", "--all", "--state", "active", "--yes")
    assert (ended["matched"], ended["changed"], ended["complete"]) == (3, 3, True)
    assert paused() == {"nightly-a", "nightly-b", "hourly"}


async def test_schedules_that_are_ahead_are_listed_and_reset(replica: Replica, world: World) -> None:
    for name in ("tick", "tock", "tack"):
        await replica.done("schedule", "add", name, *_HOURLY)
    for name in ("tick", "tock"):
        await world.fire(NOW + 3 * 3_600_000, name)
    assert "ahead of now" in (await replica.done("schedule", "list")).out
    listed = await replica.json("schedule", "list", "--ahead")
    assert [one["name"] for one in listed["items"]] == ["tick", "tock"]
    shown = (await replica.done("schedule", "get", "tick")).out
    assert "hascheduler schedule reset tick --from now" in " ".join(shown.split())
    answer = await replica.json("schedule", "reset", "tick", "--from", "now")
    assert answer["rev"] == 2
    await world.decide(ResetCursor("tick", NOW, NOW))
    assert (await replica.done("schedule", "reset", "--all", "--dry-run")).out == "would reset 1 schedule\n"
    assert (await replica.done("schedule", "reset", "--all", "--yes")).out == "reset 1 schedule\n"
    refused = await replica.run("schedule", "reset", "tick", "--from", "yesterday")
    assert (refused.status, refused.out) == (2, "")


async def test_ctrl_c_says_how_many_are_changed_and_how_to_go_on(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tick", "tock", "tack"):
        await replica.done("schedule", "add", name, *_HOURLY)
    monkeypatch.setattr("hascheduler.api.schedules.all_that_match.CHANGED_MAX", 1)
    asked: list[object] = []

    def interrupted(*arguments: Any, **more: Any) -> Any:
        asked.append(more)
        if len(asked) == 4:  # after the count and two parts
            raise KeyboardInterrupt
        return ask(*arguments, **more)

    ask = requests.asked
    monkeypatch.setattr(requests, "asked", interrupted)
    trigger = ("schedule", "trigger", "--all", "--yes", "--json")
    ended = await replica.run(*trigger)
    assert (ended.status, ended.json["changed"], ended.json["complete"]) == (130, 2, False)
    _, _, key = ended.err.strip().rpartition(" ")
    assert ended.err.endswith(f"to go on, repeat the command with --idempotency-key {key}\n")
    rest: Any = (await replica.done(*trigger, "--idempotency-key", key)).json
    assert (rest["changed"], rest["complete"]) == (1, True)
    assert sorted(job["schedule"] for job in world.everything()["jobs"]) == ["tack", "tick", "tock"]


async def test_a_preview_shows_the_payload_of_each_time(replica: Replica) -> None:
    add = ("schedule", "add", "midnight", "--cron", "0 0 * * *", "--timezone", "Asia/Tokyo", "--definition", "log")
    await replica.done(*add, "--render", "--payload", '{"message": "the sales of ${local_date}"}')
    shown = (await replica.done("schedule", "preview", "midnight", "--count", "2")).out
    assert [day for day in "1234" if f'{{"message": "the sales of 2030-01-0{day}"}}' in shown] == ["2", "3"]


async def test_jobs_of_a_schedule_may_expire(replica: Replica, tmp_path: Path) -> None:
    await replica.done(*_TICK, "--expires-in", "90s")
    written = (await replica.done("schedule", "get", "tick", "--yaml")).out
    assert "  expires_in: 1m30s\n" in written
    file = tmp_path / "tick.yaml"
    file.write_text(written.replace("1m30s", "2h"))
    await replica.done("apply", "-f", str(file), "--yes")
    shown = await replica.json("schedule", "get", "tick")
    assert shown["job"]["expires_in"] == "2h"
    await replica.done("schedule", "edit", "tick", "--expires-in", "none")
    assert "expires_in" not in (await replica.done("schedule", "get", "tick", "--yaml")).out


async def test_times_of_all_schedules_that_did_not_fire_are_shown(replica: Replica, world: World) -> None:
    assert (await replica.done("verdicts")).out == "There are no such times.\n"
    for name in ("a", "b"):
        await replica.done("schedule", "add", name, "--every", "1s", "--definition", "log", "--label", f"team={name}")
    now = SystemClock().wall_ms()
    world.clock.now = WallMs(now - 7_200_000)
    await world.pass_over(Verdict.MISSED, NOW + 1_000, NOW + 3_000, count=3, name="a")
    world.clock.now = now
    await world.pass_over(Verdict.SKIPPED, NOW + 2_000, because_of="fire:b:1", name="b")
    lines = (await replica.done("verdicts", COLUMNS="120")).out.splitlines()
    [of_b] = [line for line in lines if line.split()[:1] == ["b"]]
    [of_a] = [line for line in lines if line.split()[:1] == ["a"]]
    assert lines.index(of_b) < lines.index(of_a)
    assert "in the way: fire:b:1" in of_b
    assert "missed × 3" in of_a

    async def listed(*options: str) -> list[str]:
        answer = await replica.json("verdicts", *options)
        return [item["schedule"] for item in answer["items"]]

    assert await listed("--verdict", "missed", "--verdict", "skipped") == ["b", "a"]
    assert await listed("--verdict", "missed") == ["a"]
    assert await listed("--since", "1h") == ["b"]
    assert await listed("--text", "A") == ["a"]
    assert await listed("--label", "team=a", "--until", "1h") == ["a"]
    refused = await replica.run("verdicts", "--verdict", "fired")
    assert (refused.status, "is in /v1/jobs" in refused.err) == (2, True)


async def test_one_is_put_replaced_added_paused_and_resumed(replica: Replica) -> None:
    put = ("schedule", "put", *_TICK[2:])
    made = (await replica.done(*put, "--paused", "--label", "team=a")).out
    assert made.startswith("schedule tick: created\ntick\n")
    replaced = await replica.json(*put, "--priority", "7")
    assert (replaced["change"], replaced["job"]["priority"], replaced["labels"]) == ("changed", 7, {})
    assert replaced["paused"] is True
    refused = await replica.run(*_TICK)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "there is a schedule 'tick' already" in refused.err
    assert "\n  add " not in (await replica.done("schedule", "--help")).out
    answer = await replica.json("schedule", "add", "tock", *_TICK[3:])
    assert answer == await replica.json("schedule", "get", "tock")
    paused = await replica.json("schedule", "pause", "tock", "--because", "why not")
    assert (paused["paused"], paused["paused_because"], paused["next_at"]) == (True, "why not", None)
    assert "paused: why not" in (await replica.done("schedule", "get", "tock")).out
    assert (await replica.json("schedule", "resume", "tock", "--catch-up"))["paused"] is False
