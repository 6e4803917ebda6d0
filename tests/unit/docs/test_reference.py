"""The generated pages are what the code gives now; the README stays an entrance."""

from pathlib import Path

import pytest

from docs.generate import cli, http
from docs.generate.outputs import DOCS, PAGES, stale
from tests.unit.api.doubles import the_routes

ROOT = Path(__file__).parents[3]


def test_no_generated_page_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_application", the_routes)  # another would be a second of this process
    assert stale() == [], "write them: make reference"


def test_a_page_that_was_edited_by_hand_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    as_it_is = "reference/settings.md"
    pages = {"reference/metrics.md": lambda: "something else\n", as_it_is: PAGES[as_it_is]}
    monkeypatch.setattr("docs.generate.outputs.PAGES", pages)
    assert stale() == ["docs/reference/metrics.md"]


def test_the_command_reference_explains_each_option_once() -> None:
    explained = [line for line in cli.page().splitlines() if line.startswith("- `-")]
    assert len(explained) == len(set(explained)) > 100


def test_each_generated_page_says_so() -> None:
    for name in PAGES:
        assert (DOCS / name).read_text(encoding="utf-8").startswith("<!-- Written by `python -m docs.generate`"), name


def test_the_readme_is_an_entrance() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200
