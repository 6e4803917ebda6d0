"""``hascheduler definition …`` against the real API."""

from typing import Any

import pytest

from tests.unit.cli.invoking import Replica


async def test_a_definition_is_made_shown_listed_edited_and_deleted(replica: Replica) -> None:
    assert "There are no definitions" in (await replica.done("definition", "list")).out
    made: Any = (await replica.done("definition", "put", "repack", "--max-concurrency", "3", "--json")).json
    assert (made["name"], made["rev"], made["max_concurrency"], made["retry"]["attempts"]) == ("repack", 1, 3, 5)
    edited = await replica.done("definition", "edit", "repack", "--attempts", "9", "--max-concurrency", "none")
    assert edited.out == (
        "# definition repack: changed\n#   max_concurrency: 3 → none\n#   retry.attempts: 5 → 9\n"
        "name: repack\nretry:\n  attempts: 9\n"
    )
    assert "repack" in (await replica.done("definition", "list")).out
    assert (await replica.done("definition", "delete", "repack", "--yes")).out == "deleted repack\n"
    assert (await replica.run("definition", "get", "repack")).err == "hascheduler: no definition 'repack'\n"


_OPTIONS = (
    "--default-cost", "20s", "--max-concurrency", "3", "--conflict-group", "git", "--conflict-scope",
    "tenant", "--tier", "10", "--rate-limit",
    "100/1s", "--key-limit", "payload.customer=2,10/1m",
    "--unique", "payload.customer",
    "--resources", "cpu=2,gpu=1", "--retry-attempts", "9", "--retry-backoff", "500ms",
    "--retry-factor", "1.5", "--retry-max", "30s", "--timeout", "5m", "--total-timeout", "1h",
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
    assert all(
        text in shown
        for text in ("20s", "git", "100/1s", "cpu=2,gpu=1", "payload.customer=2,10/1m", "payload.customer keep_first")
    )
    none = ["none" if not option.startswith("--") else option for option in _OPTIONS]
    edited = (await replica.done("definition", "edit", "repack", *none)).out
    assert edited.endswith("\n#   total_timeout: 1h → none\nname: repack\n")
    assert "\n#   rate_limit: {count: 100, per: 1s} → none\n#   key_limits: " in edited
    assert "\n#   resources.cpu: 2 → none\n" in edited
    same = (await replica.done("definition", "put", "repack", *none)).out
    assert same == "# definition repack: unchanged\nname: repack\n"


async def test_what_becomes_of_duplicates_is_said_and_edited_part_by_part(replica: Replica) -> None:
    spans = ("--on-duplicate", "debounce", "--unique-period", "30s", "--unique-max-wait", "5m")
    made = await replica.done(
        "definition", "put", "invoice", "--unique", "payload.customer", "--unique", "target", *spans
    )
    assert made.out == (
        "# definition invoice: created\nname: invoice\nunique:\n  by:\n  - payload.customer\n  - target\n"
        "  on_duplicate: debounce\n  period: 30s\n  max_wait: 5m\n"
    )
    shown = (await replica.done("definition", "list", "--columns", "unique")).out
    assert "payload.customer,target debounce 30s" in shown
    edited = (await replica.done("definition", "edit", "invoice", "--unique-period", "1m")).out
    assert edited.startswith("# definition invoice: changed\n#   unique.period: 30s → 1m\n")
    kept = (
        "--on-duplicate",
        "keep_first",
        "--unique-period",
        "none",
        "--unique-max-wait",
        "none",
        "--unique",
        "target",
    )
    assert "  - target\n" in (await replica.done("definition", "edit", "invoice", *kept)).out
    assert "→ none\nname: invoice\n" in (await replica.done("definition", "edit", "invoice", "--unique", "none")).out
    all_of_them = await replica.done("definition", "put", "invoice", "--on-duplicate", "replace")
    assert all_of_them.out.endswith("unique:\n  on_duplicate: replace\n")


async def test_putting_replaces_the_whole(replica: Replica) -> None:
    await replica.done("definition", "put", "repack", "--max-concurrency", "3", "--attempts", "9")
    put = await replica.done("definition", "put", "repack")
    assert put.out == (
        "# definition repack: changed\n#   max_concurrency: 3 → none\n#   retry.attempts: 9 → 5\nname: repack\n"
    )


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["put", "repack", "--max-concurrency", "0"], "max_concurrency: 0 is too small"),
        (["put", "repack", "--attempts", "many"], "--retry-attempts: 'many' is not a whole number"),
        (["put", "repack", "--retry-factor", "much"], "--retry-factor: 'much' is not a number"),
        (["put", "repack", "--retry-factor", "nan"], "--retry-factor: 'nan' is not a number"),
        (["put", "repack", "--retry-factor", "11"], "retry.factor: 11 is out of range"),
        (["put", "repack", "--retry-backoff", "2m"], "retry: the backoff 2m is longer than max 1m"),
        (["put", "repack", "--timeout", "soon"], "timeout: 'soon' is not a duration"),
        (["put", "repack", "--key-limit", "customer"], "--key-limit: 'customer' is not KEY=LIMIT"),
        (["put", "repack", "--key-limit", "customer=2"], "key_limits.0.key: 'customer' names no field of a job"),
        (["put", "repack", "--unique", "customer"], "unique.by.0: 'customer' names no field of a job"),
        (["put", "repack", "--on-duplicate", "debounce"], "unique.period: is missing for debounce"),
        (["put", "repack", "--on-duplicate", "drop"], "unique.on_duplicate: "),
        (["put", "repack", "--unique-period", "soon"], "unique.period: 'soon' is not a duration"),
        (["put", "repack", "--unique-max-wait", "1h"], "unique.max_wait: means nothing for keep_first"),
        (["put", "repack", "--rate-limit", "100"], "--rate-limit: '100' is not N/SPAN"),
        (["put", "repack", "--rate-limit", "many/1s"], "--rate-limit: 'many' is not a whole number"),
        (["put", "repack", "--rate-limit", "5/soon"], "rate_limit.per: 'soon' is not a duration"),
        (["put", "repack", "--resources", "cpu"], "--resources: 'cpu' is no amount"),
        (["put", "repack", "--default-cost", "8d"], "default_cost: 8d is out of range"),
        (["put", "a/b"], "NAME: 'a/b' is not a name"),
        (["edit", "nobody", "--attempts", "3"], "no definition 'nobody'"),
        (["delete", "nobody", "--yes"], "no definition 'nobody'"),
    ],
)
async def test_a_mistake_is_one_line_and_status_2(replica: Replica, arguments: list[str], said: str) -> None:
    ended = await replica.run("definition", *arguments)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err
