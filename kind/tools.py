"""The programs that this takes: looked for before anything begins, then run where a person sees what they say."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hascheduler.errors import CallerError, WorldError
from kind import CONTEXT, NAMESPACE

_KIND_MIN = (0, 24)
"""Its nodes are Kubernetes 1.31: `sleep` before a container stops is there, and its network heeds NetworkPolicies."""
_PROVIDER = "KIND_EXPERIMENTAL_PROVIDER"
_ENGINES = ("docker", "podman", "nerdctl")
_WHERE = {
    "kind": "https://kind.sigs.k8s.io/docs/user/quick-start/#installation",
    "kubectl": "https://kubernetes.io/docs/tasks/tools/",
    "docker": "https://docs.docker.com/engine/install/ (or podman: https://podman.io/docs/installation)",
    "podman": "https://podman.io/docs/installation",
    "nerdctl": "https://github.com/containerd/nerdctl",
}
_ANSWER_S = 60


@dataclass(frozen=True, slots=True)
class Tools:
    """Full paths; ``engine`` is what it is called."""

    kind: str
    kubectl: str
    container: str
    engine: str
    environment: Mapping[str, str]

    def do(self, *command: str) -> None:
        """Run it in plain sight; a `WorldError` with the command when it fails."""
        if subprocess.run(command, env=self.environment, check=False, stdin=subprocess.DEVNULL).returncode:
            raise WorldError(f"this failed, and has said why: {shown(command)}")

    def ask(self, *command: str) -> str | None:
        """What it prints; None when it fails."""
        try:
            asked = subprocess.run(
                command,
                env=self.environment,
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_ANSWER_S,
            )
        except subprocess.TimeoutExpired:
            raise WorldError(f"no answer within {_ANSWER_S} s: {shown(command)}") from None
        return None if asked.returncode else asked.stdout

    def kubectl_command(self, *arguments: str) -> tuple[str, ...]:
        return (self.kubectl, "--context", CONTEXT, "--namespace", NAMESPACE, *arguments)

    def object(self, *arguments: str) -> dict[str, Any] | None:
        """What kubectl gets; None where it is not there."""
        answer = self.ask(*self.kubectl_command("get", *arguments, "-o", "json"))
        try:
            found = json.loads(answer or "null")
        except ValueError:
            raise WorldError(f"kubectl get {' '.join(arguments)} answered no JSON") from None
        return found if isinstance(found, dict) else None


def find_tools() -> Tools:
    """A `CallerError` that names all that is missing, and where to get it."""
    engine = os.environ.get(_PROVIDER) or next((name for name in _ENGINES if shutil.which(name)), "docker")
    if engine not in _ENGINES:
        raise CallerError(f"{_PROVIDER}: {engine!r} is unknown; expected one of {', '.join(_ENGINES)}")
    found = {name: shutil.which(name) for name in ("kind", "kubectl", engine)}
    missing = [f"{name} ({_WHERE[name]})" for name, path in found.items() if path is None]
    if missing:
        raise CallerError(f"not on the PATH: {', '.join(missing)}")
    environment = {**os.environ, **({} if engine == "docker" else {_PROVIDER: engine})}
    kind, kubectl, container = (path for path in found.values() if path is not None)
    tools = Tools(kind, kubectl, container, engine, environment)
    if tools.ask(container, "info") is None:
        raise CallerError(
            f"{engine} is installed but does not answer: is it running, and may you use it? See {engine} info"
        )
    _demand_version(tools.ask(kind, "version") or "")
    return tools


def _demand_version(said: str) -> None:
    found = re.search(r"v(\d+)\.(\d+)", said)
    if found is not None and (int(found[1]), int(found[2])) < _KIND_MIN:
        least = ".".join(str(part) for part in _KIND_MIN)
        raise CallerError(f"kind {found[0]} is too old; v{least} or later is at {_WHERE['kind']}")


def shown(command: tuple[str, ...]) -> str:
    """As a person would type it."""
    return " ".join((Path(command[0]).name, *command[1:]))
