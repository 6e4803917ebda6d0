"""No marker and no folder drops a test out of every tier: what `make` runs of the tests, as it would run it."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LEFT_OUT = {"check": {"real", "slow"}, "test": {"thorough"}, "long": set[str]()}
"""By tier, the markers whose tests it does not run."""


def runs(tier: str) -> list[list[str]]:
    """Return the arguments of each pytest that the tier starts."""
    target = ["check"] if tier == "check" else ["test", f"TIER={tier}"]
    told = subprocess.run(["make", "--dry-run", *target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [shlex.split(line.partition(" -m pytest ")[2]) for line in told.splitlines() if " -m pytest " in line]


def left_out(run: list[str]) -> set[str]:
    """Return the markers that the run deselects; it selects by nothing else."""
    assert not {"-k", "--deselect", "--ignore-glob"} & set(run)
    choice = run[run.index("-m") + 1] if "-m" in run else ""
    assert re.fullmatch(r"(not \w+( and not \w+)*)?", choice)
    return set(re.findall(r"not (\w+)", choice))


def is_run(file: Path, run: list[str]) -> bool:
    """Return whether a path of the run leads to the file, without an ignored one on the way."""
    paths = [ROOT / word for word in run if word.startswith("tests/")]
    ignored = [ROOT / word.removeprefix("--ignore=") for word in run if word.startswith("--ignore=")]
    return any(
        file.is_relative_to(path)
        and not any(file.is_relative_to(each) and each.is_relative_to(path) for each in ignored)
        for path in paths
    )


@pytest.mark.parametrize("tier", LEFT_OUT)
def test_each_tier_runs_every_file_and_leaves_out_by_its_markers_alone(tier: str) -> None:
    asked = runs(tier)
    assert {marker for run in asked for marker in left_out(run)} == LEFT_OUT[tier]
    folders = ["unit", "contract"] if tier == "check" else ["."]
    files = {file for folder in folders for file in (ROOT / "tests" / folder).rglob("test_*.py")}
    assert len(files) > 100
    assert {file for file in files if not any(is_run(file, run) for run in asked)} == set()
