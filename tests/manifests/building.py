"""Does here what the Dockerfile says for its build stage: its own commands, in a folder instead of a root."""

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.manifests import dockerfile
from tests.manifests.rendering import ROOT

_TARGET = "/opt/hascheduler"
_IGNORED = ("__pycache__", "*.pyc")


@dataclass(frozen=True)
class Built:
    """The environment as the final stage would copy it."""

    home: Path

    @property
    def program(self) -> Path:
        return self.home / "bin/hascheduler"

    @property
    def packages(self) -> Path:
        [found] = self.home.glob("lib/python*/site-packages")
        return found


def build(folder: Path) -> Built:
    """Takes a minute: the runtime's packages come from wherever pip gets them here."""
    home, work = folder / "hascheduler", folder / "build"
    work.mkdir()
    # Whether it compiles and runs is asked here, not how fast: optimizing takes most of the time.
    environment = {**os.environ, "MYPYC_OPT_LEVEL": "0"}
    for found in dockerfile.stages()["build"].own:
        match found.name:
            case "ENV":
                words = dict(word.split("=", 1) for word in shlex.split(found.value))
                # What pip has kept here may be used: nobody will carry it away in a layer.
                environment |= {name: value for name, value in words.items() if name != "PIP_NO_CACHE_DIR"}
            case "COPY":
                _copy(*found.value.split(), work=work)
            case "RUN" if found.value.startswith("apt-get "):
                # No package of this machine is changed; without a compiler the wheel is the pure one.
                if shutil.which("cc") is None:
                    environment["HATCH_BUILD_HOOK_ENABLE_CUSTOM"] = "false"
            case "RUN":
                _run(found.value.replace(_TARGET, str(home)), work, environment)
            case "WORKDIR":
                assert found.value == "/build"
            case _:
                raise AssertionError(f"{found.name} is not known here")
    return Built(home)


def _copy(*words: str, work: Path) -> None:
    *sources, target = words
    for source in sources:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, work / target, ignore=shutil.ignore_patterns(*_IGNORED))
        else:
            shutil.copy(ROOT / source, work / target)


def _run(command: str, work: Path, environment: dict[str, str]) -> None:
    # `python` is the one that runs the tests, as in the image it is the base's.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=work,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-3_000:]}"
