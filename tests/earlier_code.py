"""The code of earlier commits, from the history of this checkout."""

import os
import shutil
import subprocess
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def unpack(into: Path, *commits: str) -> bool:
    """The packages as the first of those commits has them that git knows here, in the folder ``into``, which is emptied
    before; False where it knows none."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for commit in commits:
        packed = _git("archive", commit, "hascheduler", "processors")
        if not packed.returncode:
            subprocess.run(["tar", "-x", "-C", into], input=packed.stdout, check=True)
            return True
    return False


def why_no_history() -> str:
    """Why earlier commits can't be had here; empty where they can."""
    shallow = _git("rev-parse", "--is-shallow-repository")
    if shallow.returncode:
        return "this is no git checkout"
    if shallow.stdout.strip() == b"true":
        return "this checkout is shallow: git fetch --unshallow --tags"
    return ""


def _git(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(["git", "-C", str(_ROOT), *arguments], capture_output=True, check=False, env=environment)
