"""What must hold of any `Journal`: it is the fence. The planted bugs must fail these."""

from hascheduler.ports import Journal
from tests.contract.racing import RACERS, raced
from tests.factories import make_entry


async def a_seq_is_written_once(journal: Journal) -> None:
    """A leader that was deposed meets the entry of its successor."""
    assert await journal.insert(make_entry(1, holder="r2", term=2)) is True
    assert await journal.insert(make_entry(1, holder="r1", term=1)) is False
    assert await journal.get("default", 1) == make_entry(1, holder="r2", term=2)


async def of_racing_inserts_at_one_seq_one_wins(journal: Journal) -> None:
    entries = [make_entry(1, holder=f"r{number}", term=number + 1) for number in range(RACERS)]
    answers = await raced(journal.insert(entry) for entry in entries)
    assert answers.count(True) == 1
    assert await journal.get("default", 1) == entries[answers.index(True)]
