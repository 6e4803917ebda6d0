"""What the documentation names is there: modules, paths, make targets, settings, commands, problem types."""

import builtins
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from docs.generate.settings import page as settings_page
from hascheduler.cli.app import app

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if path.name != "CHANGELOG.md"  # tells of names as they were
    and not path.read_text(encoding="utf-8").startswith("<!-- Written by")  # the code itself
    and not re.search(r"\nStatus:.*proposed", path.read_text(encoding="utf-8"))  # names what there is not yet
)
ROOMS = ("hascheduler", "tests", "docs", "k8s", "kind", "scripts", "processors", ".ci", ".github")
CODE = re.compile(r"```\w*\n(?P<block>.*?)```|`(?P<inline>[^`\n]+)`", re.DOTALL)
DOTTED = re.compile(r"(?<![\w./@-])hascheduler(?:\.[A-Za-z_]\w*)+(?![\w/])")
PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, ROOMS))})(?:/[\w.*-]+)+/?")
FILE = re.compile(r"(?:[\w.-]+/)+[\w-]+\.(?:py|md|yaml|yml|toml|sh|mjs)")
POINTER = re.compile(
    r"(?<![\w./-])(?:(?P<path>(?:docs/[\w./-]*|README|SECURITY|CONTRIBUTING)\.md|(?:k8s|kind|scripts)(?:/[\w.-]*[\w-])+)(?:#(?P<part>[\w-]+))?"
    r"|README, (?P<title>[A-Z][\w ]+))"
)
SPEAKING = {".py", ".yaml", ".js", ".html", ".sh", ""}
TARGET = re.compile(r"(?m)^make ([a-z][a-z0-9-]*)")
SETTING = re.compile(r"HASCHEDULER_[A-Z]+(?:_[A-Z]+)*")
COMMAND = re.compile(
    r"(?:^|(?<=[\s`(|]))(?<!-n )(?<!namespace )hascheduler ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", re.MULTILINE
)
HOSTS_AND_FILES = re.compile(r"hascheduler\.(svc|hascheduler|example|toml|yaml)\b")
IDENTIFIER = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+|_\w+|[A-Z]+_[A-Z_]+|[a-z]+_[a-z_]+")
ANYTHING_IN = ("job", "schedule", "definition", "lane", "tenant", "token", "cluster", "bootstrap")
"""Groups: their next word is a command of theirs."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [
        *(found["inline"] for found in CODE.finditer(text) if found["inline"] and is_unknown(found["inline"])),
        *(name for code in codes(text) for name in DOTTED.findall(code) if not is_importable(name)),
        *(name for code in codes(text) for name in PATH.findall(code) if not is_path(name)),
        *(name for name in codes(text) if FILE.fullmatch(name) and not is_path(name)),
        *(f"make {name}" for name in TARGET.findall("\n".join(codes(text))) if name not in targets()),
        *(name for name in SETTING.findall(text) if name not in settings()),
        *(" ".join(words) for code in codes(text) for words in COMMAND.findall(code) if not is_command(words)),
    ]
    assert missing == []


def codes(text: str) -> Iterator[str]:
    for found in CODE.finditer(text):
        yield found["block"] or found["inline"]


def is_unknown(name: str) -> bool:
    """Whether it looks like an identifier of the code, and is none."""
    is_ours = IDENTIFIER.fullmatch(name) and not SETTING.fullmatch(name) and not hasattr(builtins, name)
    return bool(is_ours) and name not in identifiers()


def is_importable(name: str) -> bool:
    if HOSTS_AND_FILES.match(name):
        return True
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def is_path(name: str) -> bool:
    bare = name.rstrip("/.")
    return any(ROOT.glob(bare)) if "*" in bare else (ROOT / bare).exists()


@cache
def identifiers() -> frozenset[str]:
    sources = (path for room in ("hascheduler", "tests") for path in (ROOT / room).rglob("*.py"))
    return frozenset(name for path in sources for name in re.findall(r"\w+", path.read_text(encoding="utf-8")))


@cache
def settings() -> str:
    return settings_page()


@cache
def targets() -> set[str]:
    return set(re.findall(r"(?m)^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))


def is_command(words: tuple[str, str]) -> bool:
    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="hascheduler")
    name, next_name = words
    if name not in root.list_commands(context):
        return False
    if name not in ANYTHING_IN or not next_name:
        return True
    group: Any = root.get_command(context, name)
    return not hasattr(group, "list_commands") or next_name in group.list_commands(context)


def test_what_messages_and_comments_point_to_is_there() -> None:
    rooms = [ROOT / name for name in ("hascheduler", "processors", "k8s", "kind", "scripts")]
    sources = [path for room in rooms for path in room.rglob("*") if path.suffix in SPEAKING and path.is_file()]
    texts = {path: path.read_text(encoding="utf-8") for path in (*sources, ROOT / "Makefile", ROOT / "Dockerfile")}
    pointers = {str(path.relative_to(ROOT)): list(unresolved(text)) for path, text in texts.items()}
    assert {path: missing for path, missing in pointers.items() if missing} == {}


def unresolved(text: str) -> Iterator[str]:
    """Pages, their sections and manifests that a text for people names, and that are not there."""
    for found in POINTER.finditer(text):
        path, part = ROOT / (found["path"] or "README.md"), found["part"] or slug(found["title"] or "")
        if not path.exists() or (part and part not in sections(path)):
            yield found.group()


def slug(title: str) -> str:
    """As the site and GitHub make anchors of titles."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.strip().lower()))


def sections(page: Path) -> set[str]:
    return {slug(title) for title in re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize(
    "text", ["(README, On Kubernetes)", "see docs/operations/no-such.md", "docs/operations/kubernetes.md#nowhere"]
)
def test_a_pointer_to_nothing_is_noticed(text: str) -> None:
    assert list(unresolved(text))
    assert not list(unresolved("README, Two commands; docs/operations/kubernetes.md#in-production."))


def test_what_is_not_there_is_noticed() -> None:
    assert not any(map(is_importable, ("hascheduler.no.such", "hascheduler.errors.NoSuch")))
    assert not is_path("hascheduler/no_such.py")
    assert not any(map(is_command, (("no-such", ""), ("job", "no-such"))))
    assert is_unknown("NoSuchNameOf" + "Ours")
