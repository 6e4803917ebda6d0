"""The peers' packages: pinned with hashes, in environments of their own that are made when they are needed.

The files name no index: what the machine's pip and npm are set to is used. ``tests/bench/peers/lock`` makes them again.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.peers.systems import Peer

FOLDER = Path(".run/bench/peers-env").resolve()
_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_MADE = "made-from"
_NPM = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


class CannotRun(Exception):
    """A peer can't take part, or stopped on the way; the message says why, in one line."""


def command_of(peer: Peer) -> list[str]:
    """What its program is started with, in an environment that has its packages; `CannotRun` if there can't be one."""
    if peer.program.suffix == ".py":
        return [str(_python() / "bin/python"), str(peer.program)]
    return ["node", str(_node(peer) / peer.program.name)]


def version_of(peer: Peer) -> str:
    """The pinned one."""
    if peer.program.suffix == ".py":
        found = re.search(rf"^{peer.package}==(\S+)", _REQUIREMENTS.read_text(), re.MULTILINE)
        assert found is not None, f"{peer.package} is pinned"
        return found[1]
    return str(json.loads((peer.folder / "package.json").read_text())["dependencies"][peer.package])


def _python() -> Path:
    home = FOLDER / "python"
    pip = [str(home / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes"]
    if not _is_made(home, _REQUIREMENTS):
        shutil.rmtree(home, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(home)])
        _run([*pip, "-r", str(_REQUIREMENTS)])
        _set_made(home, _REQUIREMENTS)
    return home


def _node(peer: Peer) -> Path:
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise CannotRun(f"{tool} is not installed")
    home, lock = FOLDER / peer.name, peer.folder / "package-lock.json"
    home.mkdir(parents=True, exist_ok=True)
    for file in (peer.program, lock, peer.folder / "package.json"):
        shutil.copy(file, home)
    if not _is_made(home, lock):
        _run(_NPM, home)
        _set_made(home, lock)
    return home


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        words = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise CannotRun(f"{' '.join(command[:3])} failed: {words[-1] if words else done.returncode}")


def _is_made(home: Path, lock: Path) -> bool:
    made = home / _MADE
    return made.exists() and made.read_text() == _digest(lock)


def _set_made(home: Path, lock: Path) -> None:
    (home / _MADE).write_text(_digest(lock))


def _digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()
