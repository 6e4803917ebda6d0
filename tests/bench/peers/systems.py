"""Who takes part, as far as each can do a workload, and the peers' packages, in environments of their own.

The packages are pinned with hashes; the files name no index. ``tests/bench/peers/lock`` makes them again."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
WORKLOADS = ("throughput", "fires", "failover")
OURS = "hascheduler"


@dataclass(frozen=True, slots=True)
class Peer:
    """How its program is used. ``workers`` are instances of role ``work``.

    ``submitters`` are instances of role ``submit``, each with its share of the jobs; where they ``also_work``, no
    others do while jobs are submitted. With ``schedules_first`` workers start when the schedules have been made.
    """

    name: str
    package: str
    keeps: str
    server: str
    workloads: tuple[str, ...]
    workers: int
    submitters: int = 1
    also_work: bool = False
    schedules_first: bool = False

    @property
    def folder(self) -> Path:
        return _HERE / self.name

    @property
    def program(self) -> Path:
        """In Python, or in JavaScript."""
        return next(self.folder.glob("program.*"))


PEERS = {
    peer.name: peer
    for peer in (
        Peer("agenda", "agenda", "durable state", "mongodb", WORKLOADS, workers=2, schedules_first=True),
        Peer(
            "apscheduler4", "apscheduler", "durable state", "mongodb", WORKLOADS,
            workers=2, submitters=2, also_work=True, schedules_first=True,
        ),
        Peer("celery5", "celery", "broker only", "rabbitmq", ("throughput", "fires"), workers=1),
        Peer("taskiq", "taskiq", "broker only", "rabbitmq", ("throughput", "fires"), workers=1),
    )
}  # fmt: skip
SYSTEMS = (OURS, *PEERS)


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
