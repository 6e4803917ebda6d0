"""Which part of the system a stack belongs to; no module of the scheduler is without one."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.bench.ledger.parts import EVENT_LOOP, LIBRARIES, PARTS, Frame, Share, part_of, share_of

ROOT = Path(__file__).parents[3]
LOOP = ("asyncio.runners:run", "uvloop:run", "hascheduler.cli.run.processes:serve", "hascheduler.__main__:main")

CODING, STREAM = "driver encode/decode", "stream decode"


def stack(*frames: str) -> list[Frame]:
    """Innermost first, on top of what starts a replica."""
    return [Frame(*frame.split(":")) for frame in (*frames, *LOOP)]


def modules() -> list[str]:
    paths = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / "hascheduler").rglob("*.py"))
    return [".".join(path.parts) for path in paths if path.name != "__init__"]


def test_each_module_has_a_part() -> None:
    """Where this fails, give the module, or its room, a part in the table of `tests.bench.ledger.parts`."""
    assert len(modules()) > 400
    assert [module for module in modules() if part_of(module) is None] == []


@pytest.mark.parametrize("module", ["hascheduler", "hascheduler.new_room", "hascheduler.mongo.new", "heapq", ""])
def test_what_the_table_does_not_name_has_none(module: str) -> None:
    assert part_of(module) is None


def test_each_entry_names_what_there_is() -> None:
    entries = [entry for entry in PARTS if find_spec(entry.partition(".")[0].partition(":")[0])]
    assert len(entries) > 100
    for entry in entries:
        module, _, function = entry.partition(":")
        spec = find_spec(module)
        assert spec is not None, entry
        if function:
            assert spec.origin is not None, entry
            assert f"def {function}(" in Path(spec.origin).read_text("utf-8"), entry


@pytest.mark.parametrize(
    ("frames", "share"),
    [
        # A library's work is its own part, and for the room that asked for it.
        (["bson:encode", "pymongo.message:_op_msg", "hascheduler.mongo.journal:insert"], (CODING, "journal")),
        (["prometheus_client.values:inc", "hascheduler.daemon.loop.stepper:_turn"], ("metrics", "decide")),
        (["pymongo.network_layer:write"], ("driver sockets", "driver sockets")),
        # Documents belong to who reads them; so does the standard library.
        (["hascheduler.model.documents.job:decode_job", "hascheduler.mongo.stream.events:change_of"], (STREAM,) * 2),
        (["heapq:heappush", "hascheduler.dispatch.timers:add"], ("decide",) * 2),
        ([":<lambda>", "hascheduler.mirror.mirror:_fold_document"], ("fold",) * 2),
        # The longest name decides, and a function is longer than its module.
        (["hascheduler.mongo.work.store:start"], ("start",) * 2),
        (["hascheduler.mongo.work.store:beat"], ("idle wake-ups: heartbeats",) * 2),
        (["starlette.middleware.errors:__call__"], ("middlewares",) * 2),
        (["starlette.routing:match"], ("HTTP routing",) * 2),
        # Nothing but what starts the process is the loop.
        ([], (EVENT_LOOP,) * 2),
        (["asyncio.tasks:wait_for", "hascheduler.assembly:serve"], (EVENT_LOOP,) * 2),
    ],
)  # fmt: skip
def test_a_sample_belongs_to_the_innermost_frame_that_has_a_part(frames: list[str], share: tuple[str, str]) -> None:
    assert share_of(stack(*frames)) == Share(*share)


def test_a_name_that_only_begins_like_an_entry_is_another_one() -> None:
    assert part_of("h11") is not None
    assert part_of("h11lib.parser") is None


def test_libraries_are_parts_of_the_table() -> None:
    assert set(PARTS.values()) >= LIBRARIES
