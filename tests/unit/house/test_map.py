"""The maps of the house name every room that is there, and none that is gone."""

import re

import pytest

from tests.unit.house.test_house import PACKAGE, ROOT

ROOMS = {path.parent for path in PACKAGE.rglob("__init__.py")} - {PACKAGE}
MODULES = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
OUTERMOST = {room.name for room in ROOMS if room.parent == PACKAGE}
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def test_architecture_names_every_room() -> None:
    table = "\n".join(line for line in ARCHITECTURE.splitlines() if line.startswith("| `"))
    named = {name.partition(".")[0] for name in re.findall(r"`([a-z0-9_./]+)`", table)} - {"migrate"}
    assert named == {room.name for room in ROOMS} | MODULES


@pytest.mark.parametrize("path", ["hascheduler/__init__.py", "CONTRIBUTING.md"])
def test_the_other_maps_name_every_outer_room(path: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    mapped = text if path.endswith(".py") else text[text.index("## Find the room") : text.index("## How code")]
    assert {room for room in OUTERMOST if not re.search(rf"\b{room}\b", mapped)} == set()


def test_the_table_of_contributing_names_no_room_that_is_gone() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    paths = re.findall(r"`(hascheduler/[a-z0-9_./]+)`", text)
    assert {path for path in paths if not (ROOT / path).exists()} == set()
