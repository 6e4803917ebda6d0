"""The house is kept: one meaning a name, each room says what it answers, and the maps name every room that is there."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "hascheduler"

GENERATED = ("client/answers.py", "client/options.py", "client/synchronous/")
"""They name what they are made from: the answers of the API and what it takes, the asynchronous client."""

ROOMS = {path.parent for path in PACKAGE.rglob("__init__.py")} - {PACKAGE}
MODULES = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
OUTERMOST = {room.name for room in ROOMS if room.parent == PACKAGE}
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def _modules(folder: Path) -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(folder.rglob("*.py"))}


def test_no_class_name_stands_in_two_modules() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path, module in _modules(PACKAGE).items():
        if path.relative_to(PACKAGE).as_posix().startswith(GENERATED):
            continue
        for node in module.body:
            if isinstance(node, ast.ClassDef):
                where[node.name].append(str(path.relative_to(ROOT)))
    assert not {name: paths for name, paths in where.items() if len(paths) > 1}


def test_architecture_names_every_room() -> None:
    table = "\n".join(line for line in ARCHITECTURE.splitlines() if line.startswith("| `"))
    named = {name.partition(".")[0] for name in re.findall(r"`([a-z0-9_./]+)`", table)}
    assert named == {room.name for room in ROOMS} | MODULES


def test_the_way_of_one_job_is_in_the_tree() -> None:
    steps = re.findall(r"(?m)^\| (\d+) \| `(hascheduler/[a-z_/]+\.py)` \| (.*) \|$", ARCHITECTURE)
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    assert 10 <= len(steps) <= 15
    assert [f"{path}: {name}" for _, path, why in steps for name in _missing_names(path, why)] == []


def _missing_names(path: str, why: str) -> list[str]:
    """Return the names in code that ``why`` says and that the file does not have; the first one must be its own."""
    text = (ROOT / path).read_text("utf-8") if (ROOT / path).exists() else ""
    own, *others = re.findall(r"`(\w+)`", why)
    defined = re.search(rf"(?m)^(?:class|async def|def) {own}\b", text)
    return [
        *([] if defined else [own]),
        *(name for name in others if not re.search(rf"\b{name}\b", text, re.IGNORECASE)),
    ]


@pytest.mark.parametrize("path", ["hascheduler/__init__.py", "CONTRIBUTING.md"])
def test_the_other_maps_name_every_outer_room(path: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    mapped = text if path.endswith(".py") else text[text.index("## Find the room") : text.index("## How code")]
    assert {room for room in OUTERMOST if not re.search(rf"\b{room}\b", mapped)} == set()
