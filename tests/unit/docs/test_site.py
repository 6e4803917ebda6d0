"""The site is built without a network, strictly, and its pages load nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
LOADS = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?(https?:)?//", re.IGNORECASE)


def build(folder: Path, *, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_site_has_all_pages_and_they_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    assert [str(page.relative_to(site)) for page in pages if LOADS.search(page.read_text(encoding="utf-8"))] == []
    for name in ("contributing", "changelog", "security"):
        assert (site / "project" / f"{name}.html").stat().st_size > 5_000
    assert json.loads((site / "reference" / "openapi.json").read_text(encoding="utf-8"))["openapi"]
    assert [path for path in site.rglob("*") if path.suffix in {".py", ".pyc"}] == []
