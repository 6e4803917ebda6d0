"""The scripts are short, and sound in the eyes of bash and shellcheck."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_BASH = "#!/usr/bin/env bash\n"
SCRIPTS = sorted(path for path in (ROOT / "scripts").iterdir() if path.read_text().startswith(_BASH))
SCRIPTS.append(ROOT / "k8s/make-secrets")
_LINES_MAX = {"make-secrets": 120, "kind-up": 140, "setup-venv": 40}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_is_short_and_sound(script: Path) -> None:
    lines = script.read_text().splitlines()
    assert len(lines) <= _LINES_MAX.get(script.name, 30)
    assert script.stat().st_mode & 0o111 == 0o111
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    shellcheck = Path(sys.executable).parent / "shellcheck"
    found = subprocess.run([shellcheck, script], check=False, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.parametrize("script", ["kind-up", "kind-down", "demo-failover"])
def test_a_script_that_fails_stops(script: str) -> None:
    assert "set -euo pipefail" in (ROOT / "scripts" / script).read_text().splitlines()
