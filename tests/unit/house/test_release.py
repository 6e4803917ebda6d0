"""One release: every place that says which one says the same."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hascheduler import __version__
from hatch_metadata import RepositoryLinks
from tests.manifests import dockerfile

ROOT = Path(__file__).parents[3]


def test_every_place_says_the_same_version() -> None:
    newest = re.search(r"(?m)^## \[(.+?)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    assert newest is not None
    said = {
        "pyproject.toml": tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"],
        "CHANGELOG.md, with a date": newest[1],
        "Dockerfile": dockerfile.arguments()["VERSION"],
    }
    assert said == dict.fromkeys(said, __version__)
    named = {page: re.findall(r"hascheduler(?:-processor)?:(\d+\.[\w.]+)", page.read_text("utf-8")) for page in _PAGES}
    assert {str(page): set(tags) - {__version__} for page, tags in named.items() if set(tags) - {__version__}} == {}
    assert sum(map(len, named.values())) > 4


_PAGES = [ROOT / "Dockerfile", ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


def test_the_readme_has_no_relative_link_on_pypi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://forge.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/hascheduler")
    metadata: dict[str, Any] = {"version": __version__}
    RepositoryLinks(str(ROOT), {}).update(metadata)
    links = re.findall(r"\]\(([^)]+)\)", metadata["readme"]["text"])
    assert len(links) > 20
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    ours = re.compile(rf"https://forge.example/someone/hascheduler/(?:blob|raw)/v{__version__}/([^#]+).*")
    paths = [found[1] for link in (*links, *metadata["urls"].values()) if (found := ours.fullmatch(link))]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    [picture] = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", metadata["readme"]["text"])
    assert "/raw/" in picture


def test_without_a_repository_nothing_is_invented(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    metadata: dict[str, Any] = {"version": __version__}
    RepositoryLinks(str(ROOT), {}).update(metadata)
    assert metadata["urls"] == {}
    assert metadata["readme"]["text"] == (ROOT / "README.md").read_text("utf-8")
