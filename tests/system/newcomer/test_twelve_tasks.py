"""Twelve tasks of a new user, each with three commands at most, typed as the documentation writes them.

One system for all: a replica, and a processor with the handlers of a shop.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.system.processes import Processes, environment_of, eventually
from tests.system.terminal import typed

COMMANDS_MAX = 3
LIMIT_S = 240


class Newcomer:
    """Types commands in a folder, at most so many a task, and reads what they print."""

    def __init__(self, folder: Path, system: Processes) -> None:
        self.folder = folder
        self.system = system
        self.typed = 0

    async def types(self, command: str, status: int = 0) -> str:
        self.typed += 1
        assert self.typed <= COMMANDS_MAX
        return await self.sees(command, status)

    async def sees(self, command: str, status: int = 0) -> str:
        """As `types`, for the test's own questions."""
        environment = {"HASCHEDULER_URL": self.system.any_url()}
        ended, output = await typed(
            "bash", "-uc", command, folder=self.folder, environment=environment, limit_s=LIMIT_S
        )
        assert ended == status, f"{command}\n{output}"
        return output

    async def asks(self, command: str) -> Any:
        return json.loads(await self.sees(f"{command} --json"))

    async def jobs(self, which: str) -> list[dict[str, Any]]:
        """The jobs in full."""
        found = (await self.asks(f"hascheduler job list {which} --limit 20"))["items"]
        return [await self.system.get(f"/v1/jobs/{job['id']}") for job in found]

    def writes(self, name: str, *lines: object) -> None:
        (self.folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, amqp_url: str) -> AsyncIterator[Processes]:
    folder, name = tmp_path_factory.mktemp("newcomer"), f"test-{secrets.token_hex(6)}"
    environment = environment_of(mongodb_uri, amqp_url, name) | {"SHOP_BANK_OPEN": str(folder / "bank")}
    async with Processes(folder, environment, mongodb_uri, name) as running:
        await running.replica("one")
        await running.processor("worker", "tests.system.newcomer.shop", slots=16)
        yield running


@pytest.fixture
def newcomer(system: Processes) -> Newcomer:
    return Newcomer(system.folder, system)


async def test_a_function_at_half_past_seven_on_weekdays_in_berlin(newcomer: Newcomer) -> None:
    await newcomer.types(
        'hascheduler schedule put report --cron "30 7 * * 1-5" --timezone Europe/Berlin --definition report'
    )
    next_at = datetime.fromisoformat((await newcomer.asks("hascheduler schedule get report"))["next_at"])
    local = next_at.astimezone(ZoneInfo("Europe/Berlin"))
    assert (local.hour, local.minute, local.weekday() < 5) == (7, 30, True)
    job = (await newcomer.types("hascheduler schedule trigger report --output name")).strip()
    await newcomer.types(f"hascheduler job wait {job} --timeout 60s")


async def test_five_tries_and_tell_me(newcomer: Newcomer) -> None:
    await newcomer.types("hascheduler definition put charge --attempts 5 --retry-backoff 10ms --on-failure notify")
    shown = await newcomer.types("hascheduler job submit charge --payload '{\"card\": 7}' --wait 60s", status=3)
    assert "the bank refused card 7" in shown
    failed = (await newcomer.asks("hascheduler job failed --definition charge"))["items"][0]

    async def told() -> Any:
        return [job["result"] for job in await newcomer.jobs("--definition notify --state succeeded")] or None

    [result] = await eventually(told, "the notification ran")
    assert (result["told"], "card 7" in result["error"]) == (failed["id"], True)
    assert failed["failures"] == 5


async def test_three_a_customer(newcomer: Newcomer) -> None:
    newcomer.writes("images.jsonl", *({"definition": "render", "payload": {"customer": "acme"}} for _ in range(9)))
    await newcomer.types("hascheduler definition put render --key-limit payload.customer=3")
    await newcomer.types("hascheduler job batch images.jsonl --wait 60s")
    assert max(job["result"] for job in await newcomer.jobs("--definition render")) == 3


async def test_a_graph(newcomer: Newcomer) -> None:
    newcomer.writes(
        "graph.jsonl",
        {"ref": "a", "definition": "fetch"},
        {"ref": "b", "definition": "index", "depends_on": ["ref:a"]},
        {"ref": "c", "definition": "check", "depends_on": ["ref:a"]},
        {"definition": "publish", "depends_on": ["ref:b", "ref:c"]},
    )
    await newcomer.types("hascheduler job batch graph.jsonl --wait 60s")
    ended = {}
    for definition in ("fetch", "index", "check", "publish"):
        [job] = await newcomer.jobs(f"--definition {definition}")
        ended[definition] = job["attempts"][-1]
    assert ended["publish"]["started_at"] >= max(ended["index"]["finished_at"], ended["check"]["finished_at"])
    assert min(ended["index"]["started_at"], ended["check"]["started_at"]) >= ended["fetch"]["finished_at"]


async def test_pause_for_a_deploy(newcomer: Newcomer) -> None:
    await newcomer.types('hascheduler pause --all --because "deploy 42"')
    waiting = (await newcomer.sees("hascheduler job submit report --output name")).strip()
    assert "deploy 42" in await newcomer.sees(f"hascheduler why {waiting}")
    resumed = await newcomer.types("hascheduler resume --all")
    assert "deploy 42" in resumed
    await newcomer.sees(f"hascheduler job wait {waiting} --timeout 60s")


async def test_why_does_it_wait(newcomer: Newcomer) -> None:
    job = (await newcomer.types("hascheduler job submit reprot --output name 2>/dev/null")).strip()
    why = await newcomer.types(f"hascheduler why {job}")
    assert "worker does not run 'reprot'" in why


async def test_backfill_a_week(newcomer: Newcomer) -> None:
    await newcomer.types('hascheduler schedule put daily --cron "0 6 * * *" --definition report')
    await newcomer.types("hascheduler schedule backfill daily --from 7d --to 0s")

    async def ran() -> bool:
        return len(await newcomer.jobs("--schedule daily --state succeeded")) == 7

    await eventually(ran, "seven jobs ran")


async def test_move_a_time_and_lose_none(newcomer: Newcomer) -> None:
    await newcomer.sees('hascheduler schedule put move --cron "30 2 * * *" --definition report')
    preview = await newcomer.types('hascheduler schedule edit move --cron "0 5 * * *" --dry-run')
    assert "05:00" in preview
    await newcomer.types('hascheduler schedule edit move --cron "0 5 * * *"')
    assert (await newcomer.asks("hascheduler schedule get move"))["counts"]["missed"] == 0


async def test_run_yesterdays_failures_with_one_error_again(newcomer: Newcomer) -> None:
    newcomer.writes("cards.jsonl", *({"definition": "charge", "payload": {"card": card}} for card in range(100, 104)))
    await newcomer.sees("hascheduler definition put charge --attempts 1")
    await newcomer.sees("hascheduler job batch cards.jsonl --wait 60s", status=3)
    assert "refused card" in await newcomer.types("hascheduler job errors")
    (newcomer.folder / "bank").touch()
    await newcomer.types("hascheduler job retry --error 'refused card 10' --failed-since 1d --yes")

    async def paid() -> bool:
        return len(await newcomer.jobs("--definition charge --state succeeded")) == 4

    await eventually(paid, "the four are paid")


async def test_delete_a_tenant(newcomer: Newcomer) -> None:
    await newcomer.sees("hascheduler tenant put shop --max-pending 100")
    await newcomer.sees("hascheduler schedule put shops --every 1h --definition report --tenant shop")
    await newcomer.sees("hascheduler job submit report --tenant shop --wait 60s")
    assert "1 schedule" in await newcomer.types("hascheduler tenant delete shop --with-everything --dry-run")
    await newcomer.types("hascheduler tenant delete shop --with-everything --yes")
    # An ended job stays ten minutes, as all do: until then a decision that is applied again must find it.
    assert not await newcomer.system.database.jobs.count_documents({"tenant": "shop", "deleted_at_ms": None})
    assert not (await newcomer.asks("hascheduler schedule list --tenant shop"))["items"]


async def test_ten_thousand_and_wait(newcomer: Newcomer) -> None:
    newcomer.writes("many.jsonl", *({"definition": "import", "payload": {"row": row}} for row in range(10_000)))
    await newcomer.types("hascheduler job batch many.jsonl --wait 3m")
    assert (await newcomer.asks("hascheduler job counts --definition import"))["succeeded"] == 10_000


async def test_tell_me_of_missed_fires(newcomer: Newcomer) -> None:
    await newcomer.sees("hascheduler schedule put often --every 100ms --definition report --catch-up none --grace 0s")
    following = asyncio.create_task(
        newcomer.types("timeout 120 hascheduler events --type schedule.missed --json | head -1")
    )
    while not following.done():  # the first of it may be over before it follows
        await newcomer.sees("hascheduler pause --all --because lunch; sleep 1; hascheduler resume --all")
    event = json.loads(await following)
    assert (event["type"], event["schedule"]) == ("schedule.missed", "often")
