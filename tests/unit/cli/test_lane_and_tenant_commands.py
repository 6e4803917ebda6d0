"""``hascheduler lane …`` and ``hascheduler tenant …`` against the real API."""

from typing import Any

import pytest

from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica


async def test_a_lane_is_made_shown_listed_edited_and_deleted(replica: Replica) -> None:
    assert "There are no lanes" in (await replica.done("lane", "list")).out
    made = await replica.done("lane", "put", "bulk", "--weight", "2", "--promote-after", "30s", "--policy", "fair")
    shown = "name: bulk\nweight: 2\npromote_after: 30s\npolicy:\n- tier\n- fairness\n- arrival\n"
    assert made.out == f"# lane bulk: created\n{shown}"
    assert (await replica.done("lane", "get", "bulk")).out == shown
    assert "tier, fairness, arrival" in (await replica.done("lane", "list")).out
    edited = await replica.done("lane", "edit", "bulk", "--policy", "none", "--promote-after", "none", "--weight", "3")
    assert edited.out == (
        "# lane bulk: changed\n#   weight: 2 → 3\n#   promote_after: 30s → 1m\n"
        "#   policy: [tier, fairness, arrival] → none\nname: bulk\nweight: 3\n"
    )
    assert (await replica.done("apply", "-f", "-", input=f"kind: Lane\n{edited.out}")).out == "1 unchanged\n"
    assert (await replica.done("lane", "delete", "bulk", "--yes")).out == "deleted bulk\n"
    assert (await replica.run("lane", "get", "bulk")).err == "hascheduler: no lane 'bulk'\n"


async def test_each_priority_of_a_lane_may_have_its_own_step(replica: Replica) -> None:
    steps = [f"{step}s" for step in range(11, 0, -1)]
    made: Any = (await replica.done("lane", "put", "bulk", "--promote-after", ",".join(steps), "--json")).json
    assert made["promote_after"] == steps
    assert "11s, 10s" in (await replica.done("lane", "list", COLUMNS="120")).out


async def test_a_tenant_is_made_shown_listed_edited_and_deleted(replica: Replica) -> None:
    assert "There are no tenants" in (await replica.done("tenant", "list")).out
    made = await replica.done("tenant", "put", "acme", "--max-running", "9")
    assert made.out == "# tenant acme: created\nname: acme\nmax_running: 9\n"
    assert "acme" in (await replica.done("tenant", "list")).out
    edited = await replica.done("tenant", "edit", "acme", "--max-running", "none")
    assert edited.out == "# tenant acme: changed\n#   max_running: 9 → none\nname: acme\n"
    listed: Any = (await replica.done("tenant", "list", "--json")).json
    assert [(one["name"], one["rev"], one["max_running"]) for one in listed["items"]] == [("acme", 2, None)]
    assert (await replica.done("tenant", "delete", "acme", "--yes", "--json")).json == {"name": "acme", "deleted": True}


async def test_what_a_tenant_may_ask_is_limited_too(replica: Replica) -> None:
    made = await replica.done("tenant", "put", "acme", "--max-pending", "10000", "--submit-rate", "100/1s")
    assert made.out == "# tenant acme: created\nname: acme\nmax_pending: 10000\nsubmit_rate:\n  count: 100\n  per: 1s\n"
    listed = (await replica.done("tenant", "list")).out
    assert "10000" in listed
    assert "100/1s" in listed
    edited = await replica.done("tenant", "edit", "acme", "--max-pending", "none", "--submit-rate", "none")
    assert edited.out.endswith("#   submit_rate: {count: 100, per: 1s} → none\nname: acme\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lane", "put", "bulk", "--weight", "0"], "weight: 0 is too small"),
        (["lane", "put", "bulk", "--weight", "heavy"], "--weight: 'heavy' is not a whole number"),
        (["lane", "put", "bulk", "--policy", "luck"], "policy: 'luck' is unknown"),
        (["lane", "put", "bulk", "--promote-after", "1m,2m"], "promote_after: a list of 2"),
        (["lane", "edit", "nobody", "--weight", "3"], "no lane 'nobody'"),
        (["lane", "delete", "bulk"], "no lane 'bulk'"),
        (["tenant", "put", "a/b"], "NAME: 'a/b' is not a name"),
        (["tenant", "put", "acme", "--max-running", "0"], "max_running: 0 is too small"),
        (["tenant", "put", "acme", "--submit-rate", "100"], "--submit-rate: '100' is not N/SPAN"),
        (["tenant", "put", "acme", "--submit-rate", "0/1s"], "submit_rate.count: 0 is too small"),
        (["tenant", "edit", "acme"], "no tenant 'acme'"),
    ],
)
async def test_a_mistake_is_one_line_and_status_2(
    replica: Replica, world: World, arguments: list[str], said: str
) -> None:
    ended = await replica.run(*arguments)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err
    assert world.everything() == World().everything()


async def test_nothing_is_deleted_unasked(replica: Replica) -> None:
    await replica.done("lane", "put", "bulk")
    ended = await replica.run("lane", "delete", "bulk")
    assert (ended.status, "Delete the lane bulk?" in ended.err) == (2, True)
    await replica.done("lane", "get", "bulk")
