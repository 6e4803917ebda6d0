"""One release: every place that says which one says the same."""

import re
import tomllib
from pathlib import Path

from hascheduler import __version__
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
