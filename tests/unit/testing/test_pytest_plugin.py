"""The plugin in a project of its own, with the tests that the documentation shows."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = next(parent for parent in Path(__file__).parents if (parent / "pyproject.toml").exists())


_PLUGINS_OF_OURS = ("anyio", "asyncio", "hypothesispytest", "schemathesis", "timeout", "xdist")
"""What this environment has beside the package: a project without them imports none of it."""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A pytest of a project that has nothing but this package."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n", encoding="utf-8")
    without = [word for name in _PLUGINS_OF_OURS for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", "-q", *without, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)


def test_the_documented_tests_pass_as_they_stand(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/testing.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "test_documented.py").write_text(code, encoding="utf-8")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_a_test_that_asks_for_none_imports_nothing_of_the_scheduler(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_it():\n"
        "    assert 'hascheduler.pytest_plugin' in sys.modules\n"
        "    assert not {'hascheduler.testing', 'fastapi', 'pymongo', 'structlog'} & set(sys.modules)\n",
        encoding="utf-8",
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_marker_is_listed(tmp_path: Path) -> None:
    assert "virtual_scheduler(*handlers" in run_pytest(tmp_path, "--markers").stdout
