"""``hascheduler definition``, ``lane``, ``calendar`` and ``tenant`` against the real API."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica

_LIFE = {
    "lane": (
        "--weight 2 --promote-after 30s --policy fair",
        "weight: 2\npromote_after: 30s\npolicy:\n- tier\n- fairness\n- arrival\n", "tier, fairness, arrival",
        "--policy none --promote-after none --weight 3",
        "#   weight: 2 → 3\n#   promote_after: 30s → 1m\n#   policy: [tier, fairness, arrival] → none\n", "weight: 3\n",
    ),
    "tenant": (
        "--max-running 9 --max-pending 10000 --submit-rate 100/1s",
        "max_running: 9\nmax_pending: 10000\nsubmit_rate:\n  count: 100\n  per: 1s\n", "100/1s",
        "--max-running none --max-pending none --submit-rate none",
        "#   max_running: 9 → none\n#   max_pending: 10000 → none\n"
        "#   submit_rate: {count: 100, per: 1s} → none\n", "",
    ),
    "calendar": (
        "--weekdays sat,sun --exclude --12-25,2030-12-24",
        "weekdays:\n- sat\n- sun\nexclude:\n- '2030-12-24'\n- --12-25\n", "sat, sun",
        "--exclude none", "#   exclude: ['2030-12-24', --12-25] → []\n", "weekdays:\n- sat\n- sun\n",
    ),
    "definition": (
        "--max-concurrency 3", "max_concurrency: 3\n", "3",
        "--attempts 9 --max-concurrency none",
        "#   max_concurrency: 3 → none\n#   retry.attempts: 5 → 9\n", "retry:\n  attempts: 9\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", _LIFE)
async def test_one_is_made_shown_listed_edited_and_deleted(replica: Replica, kind: str) -> None:
    put, made, listed, edit, told, left = _LIFE[kind]
    assert f"There are no {kind}s" in (await replica.done(kind, "list")).out
    assert (await replica.done(kind, "put", "a", *put.split())).out == f"# {kind} a: created\nname: a\n{made}"
    assert (await replica.done(kind, "get", "a")).out == f"name: a\n{made}"
    assert listed in (await replica.done(kind, "list", COLUMNS="180")).out
    edited = (await replica.done(kind, "edit", "a", *edit.split())).out
    assert edited == f"# {kind} a: changed\n{told}name: a\n{left}"
    manifest = f"kind: {kind.capitalize()}\n{edited}"
    assert (await replica.done("apply", "-f", "-", input=manifest)).out == "1 unchanged\n"
    answer = await replica.json(kind, "list")
    assert [(one["name"], one["rev"]) for one in answer["items"]] == [("a", 2)]
    unasked = await replica.run(kind, "delete", "a")
    assert (unasked.status, f"Delete the {kind} a?" in unasked.err) == (2, True)
    assert (await replica.done(kind, "delete", "a", "--yes", "--json")).json == {"name": "a", "deleted": True}
    assert (await replica.run(kind, "get", "a")).err == f"hascheduler: no {kind} 'a'\n"


async def test_each_priority_of_a_lane_may_have_its_own_step(replica: Replica) -> None:
    steps = [f"{step}s" for step in range(11, 0, -1)]
    made: Any = (await replica.done("lane", "put", "bulk", "--promote-after", ",".join(steps), "--json")).json
    assert made["promote_after"] == steps
    assert "11s, 10s" in (await replica.done("lane", "list", COLUMNS="120")).out


async def test_one_form_is_chosen_for_what_is_printed(replica: Replica) -> None:
    put = ("definition", "put", "repack", "--tier", "4", "--total-timeout", "1h")
    assert (await replica.done(*put, "-o", "name")).out == "repack\n"
    await replica.done("definition", "put", "resize")
    manifest = "kind: Definition\nname: repack\ntier: 4\ntotal_timeout: 1h\n"
    assert (await replica.done("definition", "get", "repack", "-o", "yaml")).out == manifest
    assert (await replica.done(*put, "-o", "yaml")).out == manifest
    listed = (await replica.done("definition", "list", "-o", "yaml")).out
    assert listed == f"{manifest}---\nkind: Definition\nname: resize\n"
    assert (await replica.done("apply", "-f", "-", input=listed)).out == "2 unchanged\n"
    assert (await replica.done("definition", "list", "-o", "name")).out == "repack\nresize\n"
    answer = await replica.done("definition", "get", "repack", "-o", "json")
    assert answer.json == (await replica.json("definition", "get", "repack"))
    left_out = " ".join((await replica.done("definition", "list")).out.partition("not shown: ")[2].split())
    assert "total timeout, " in left_out
    assert left_out.endswith(", revision; --wide shows all")
    assert "not shown" not in (await replica.done("definition", "list", "-o", "wide")).out


_OPTIONS = (
    "--default-cost", "20s", "--max-concurrency", "3", "--conflict-group", "git", "--conflict-scope", "tenant",
    "--tier", "10", "--rate-limit", "100/1s", "--key-limit", "payload.customer=2,10/1m", "--unique", "payload.customer",
    "--resources", "cpu=2,gpu=1", "--retry-attempts", "9", "--retry-backoff", "500ms", "--retry-factor", "1.5",
    "--retry-max", "30s", "--timeout", "5m", "--total-timeout", "1h",
)  # fmt: skip


async def test_every_limit_has_an_option_and_none_puts_it_back(replica: Replica) -> None:
    made = await replica.done("definition", "put", "repack", *_OPTIONS)
    assert made.out == (
        "# definition repack: created\nname: repack\n"
        "default_cost: 20s\nmax_concurrency: 3\nconflict_group: git\nconflict_scope: tenant\n"
        "tier: 10\n"
        "rate_limit:\n  count: 100\n  per: 1s\nkey_limits:\n- key: payload.customer\n  max_concurrency: 2\n"
        "  rate_limit:\n    count: 10\n    per: 1m\nresources:\n  cpu: 2\n  gpu: 1\nunique:\n  by:\n"
        "  - payload.customer\nretry:\n  attempts: 9\n"
        "  backoff: 500ms\n  factor: 1.5\n  max: 30s\ntimeout: 5m\ntotal_timeout: 1h\n"
    )
    shown = (await replica.done("definition", "list", COLUMNS="180")).out
    for text in ("20s", "git", "100/1s", "cpu=2,gpu=1", "payload.customer=2,10/1m", "payload.customer keep_first"):
        assert text in shown
    none = ["none" if not option.startswith("--") else option for option in _OPTIONS]
    edited = (await replica.done("definition", "edit", "repack", *none)).out
    assert edited.endswith("\n#   total_timeout: 1h → none\nname: repack\n")
    assert "\n#   rate_limit: {count: 100, per: 1s} → none\n#   key_limits: " in edited
    assert "\n#   resources.cpu: 2 → none\n" in edited
    same = (await replica.done("definition", "put", "repack", *none)).out
    assert same == "# definition repack: unchanged\nname: repack\n"


async def test_what_becomes_of_duplicates_is_said_and_edited_part_by_part(replica: Replica) -> None:
    spans = "--on-duplicate debounce --unique-period 30s --unique-max-wait 5m"
    kept = "--on-duplicate keep_first --unique-period none --unique-max-wait none --unique target"
    for typed, printed in (
        (f"put a --unique payload.customer --unique target {spans}",
         "# definition a: created\nname: a\nunique:\n  by:\n  - payload.customer\n  - target\n"
         "  on_duplicate: debounce\n  period: 30s\n  max_wait: 5m\n"),
        ("list --columns unique", "payload.customer,target debounce 30s"),
        ("edit a --unique-period 1m", "# definition a: changed\n#   unique.period: 30s → 1m\n"),
        (f"edit a {kept}", "  - target\n"),
        ("edit a --unique none", "→ none\nname: a\n"),
        ("put a --on-duplicate replace", "unique:\n  on_duplicate: replace\n"),
    ):  # fmt: skip
        assert printed in (await replica.done("definition", *typed.split())).out


async def test_programs_are_told_what_a_put_and_an_edit_changed(replica: Replica) -> None:
    told: list[Any] = [
        (await replica.done("definition", *arguments, "--json")).json
        for arguments in (
            ("put", "repack", "--tier", "4"), ("put", "repack", "--tier", "4"), ("put", "repack", "--timeout", "90s"),
            ("edit", "repack", "--timeout", "2m"), ("edit", "repack", "--timeout", "120s"),
        )
    ]  # fmt: skip
    assert [(one["rev"], one["change"]) for one in told] == [
        (1, "created"), (1, "unchanged"), (2, "changed"), (3, "changed"), (3, "unchanged")
    ]  # fmt: skip
    assert [one["changes"] for one in told] == [
        [], [], [{"field": "tier", "before": 4, "after": None}, {"field": "timeout", "before": None, "after": "1m30s"}],
        [{"field": "timeout", "before": "1m30s", "after": "2m"}], [],
    ]  # fmt: skip


async def test_a_schedule_is_put_on_calendars_and_taken_off(replica: Replica, world: World) -> None:
    await replica.done("calendar", "put", "office", "--weekdays", "mon-fri")
    add = ("schedule", "add", "s", "--cron", "0 9 * * *", "--definition", "log")
    refused = await replica.run(*add, "--only-on", "ofice")
    assert (refused.status, "expected office" in refused.err) == (2, True)
    await replica.done(*add, "--only-on", "office", "--days-of", "europe/berlin")
    stored = world.stored(Collection.SCHEDULES, "s")["trigger"]
    assert (stored["type"], stored["only"], stored["timezone"]) == ("calendars", ["office"], "Europe/Berlin")
    refused = await replica.run("calendar", "delete", "office", "--yes")
    assert (refused.status, "used by the schedules s;" in refused.err) == (2, True)
    assert (await replica.done("schedule", "calendar", "--days", "8")).out.count("s\n") >= 5
    await replica.done("schedule", "edit", "s", "--only-on", "none", "--except-on", "none")
    assert world.stored(Collection.SCHEDULES, "s")["trigger"]["type"] == "cron"
