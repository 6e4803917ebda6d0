"""The scripts are short and sound; those for kind and the demo run with stand-ins for the programs they call."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.scripted_tools import Says, calls, put_tool

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
_NODES = "hascheduler-control-plane hascheduler-worker hascheduler-worker2 hascheduler-worker3\n"
_NO = Says(status=1)


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    text: str
    calls: list[str]

    def called(self, *parts: str) -> list[str]:
        return [call for call in self.calls if all(part in call for part in parts)]


def _run(folder: Path, script: str, *arguments: str, **variables: str) -> Ended:
    """With nothing on the path but the stand-ins and what any script takes."""
    for program in ("awk", "bash", "dirname", "env", "mktemp", "rm"):
        if not (folder / program).exists():
            (folder / program).symlink_to(str(shutil.which(program)))
    (folder / "calls").unlink(missing_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HASCHEDULER_", "KIND_"))}
    ended = subprocess.run(
        [ROOT / "scripts" / script, *arguments],
        env={**kept, **variables, "PATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return Ended(ended.returncode, ended.stdout, calls(folder))


def _put(
    folder: Path,
    *,
    engine: str = "docker",
    kind: Mapping[str, Says] | None = None,
    kubectl: Mapping[str, Says] | None = None,
    container: Mapping[str, Says] | None = None,
) -> None:
    usual: dict[str, dict[str, Says]] = {
        "kind": {
            "version": Says(out="kind v0.29.0 go1.24.2 linux/amd64\n"),
            "get clusters": Says(err="No kind clusters found.\n"),
            "get nodes": Says(out=_NODES.replace(" ", "\n")),
            "": Says(),
        },
        "kubectl": {
            "get deployments,statefulsets": Says(out="deployment.apps/scheduler\nstatefulset.apps/mongodb\n"),
            "": Says(),
        },
        engine: {"image inspect": Says(out="sha256:1\n"), "": Says()},
    }
    for tool, changed in (("kind", kind or {}), ("kubectl", kubectl or {}), (engine, container or {})):
        rest = {part: says for part, says in usual[tool].items() if part not in changed}
        put_tool(folder, tool, {**changed, **rest})


def test_up_makes_the_cluster_builds_loads_applies_and_says_the_way_in(tmp_path: Path) -> None:
    _put(tmp_path, container={"crictl inspecti": _NO})
    ended = _run(tmp_path, "kind-up")
    assert ended.status == 0, ended.text
    order = [
        ended.calls.index(call)
        for call in (
            *ended.called("kind create cluster --name hascheduler --config", "kind/cluster.yaml"),
            *ended.called("docker build --target scheduler --tag docker.io/library/hascheduler:"),
            *ended.called("docker build --target processor --tag docker.io/library/hascheduler-processor:"),
            *ended.called("kind load docker-image --name hascheduler hascheduler:", " hascheduler-processor:"),
            *ended.called("docker exec hascheduler-worker crictl pull docker.io/library/mongo:"),
            *ended.called("docker exec hascheduler-worker crictl pull docker.io/library/rabbitmq:"),
            *ended.called("kubectl --context kind-hascheduler apply --kustomize", "k8s/overlays/kind"),
        )
    ]
    assert len(order) == 7
    assert order == sorted(order)
    assert not ended.called("control-plane", "crictl")
    assert not ended.called("rollout restart")
    assert "http://127.0.0.1:8080" in ended.text
    assert "TOKEN=$(cat k8s/overlays/kind/secrets/hascheduler-scheduler/admin-token)" in ended.text
    assert ended.called("rollout status deployment.apps/scheduler --timeout=")
    assert ended.called("rollout status statefulset.apps/mongodb --timeout=")
    kubectl_calls = ended.called("kubectl ")
    assert kubectl_calls == [call for call in kubectl_calls if "--context kind-hascheduler" in call]


def test_up_again_does_only_what_is_left(tmp_path: Path) -> None:
    _put(tmp_path, kind={"get clusters": Says(out="hascheduler\n")})
    ended = _run(tmp_path, "kind-up")
    assert ended.status == 0, ended.text
    assert not ended.called("create cluster")
    assert not ended.called("crictl pull")
    assert not ended.called("rollout restart"), "the images are those of before"
    assert not ended.called("delete"), "an apply needs nothing out of its way"
    assert len(ended.called("apply")) == 1


def test_a_workload_that_does_not_come_is_shown_with_its_events_and_last_lines(tmp_path: Path) -> None:
    late = {
        "rollout status": _NO,
        "get events": Says(out="Back-off pulling image\n"),
        "logs deployment.apps/scheduler": Says(out="the last line\n"),
    }
    _put(tmp_path, kubectl=late)
    ended = _run(tmp_path, "kind-up")
    assert ended.status == 1
    assert "Back-off pulling image\nthe last line\n" in ended.text
    assert ended.text.endswith(
        "kubectl --context kind-hascheduler --namespace hascheduler describe deployment.apps/scheduler\n"
    )


@pytest.mark.parametrize("missing", ["kind", "kubectl", "docker"])
def test_what_is_missing_is_said_with_where_to_get_it(tmp_path: Path, missing: str) -> None:
    _put(tmp_path)
    (tmp_path / missing).unlink()
    ended = _run(tmp_path, "kind-up")
    assert (ended.status, ended.calls) == (2, [])
    assert re.fullmatch(rf"kind-up: not on the PATH: {missing} \(https://\S+.*\)\n", ended.text)


@pytest.mark.parametrize(
    ("put", "status", "said"),
    [
        ({"container": {"info": _NO}}, 2, "docker is installed but does not answer"),
        ({"kind": {"version": Says(out="kind v0.20.0 go1.20.4\n")}}, 2, "kind v0.20 is too old"),
        ({"kind": {"create cluster": _NO}}, 1, "is port 8080 taken"),
        ({"container": {"build --target processor": _NO}}, 1, "docker build --target processor"),
        ({"kind": {"load": _NO}}, 1, "kind load docker-image"),
        ({"kubectl": {"apply": Says(err="error: no\n", status=1)}}, 1, "kubectl --context kind-hascheduler apply"),
    ],
)
def test_a_step_that_fails_is_the_last_and_is_named(
    tmp_path: Path, put: dict[str, dict[str, Says]], status: int, said: str
) -> None:
    _put(tmp_path, kind=put.get("kind"), kubectl=put.get("kubectl"), container=put.get("container"))
    ended = _run(tmp_path, "kind-up")
    assert ended.status == status, ended.text
    assert said in ended.text.splitlines()[-1]
    assert "Traceback" not in ended.text


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    _put(tmp_path)
    ended = _run(tmp_path, "kind-up", KIND_EXPERIMENTAL_PROVIDER="lxc")
    assert (ended.status, ended.text.count("\n")) == (2, 1)
    assert "'lxc' is unknown; expected one of docker, podman, nerdctl" in ended.text


def test_down_deletes_that_cluster(tmp_path: Path) -> None:
    _put(tmp_path)
    ended = _run(tmp_path, "kind-down")
    assert (ended.status, ended.calls) == (0, ["kind delete cluster --name hascheduler"])


def test_the_demo_gets_its_options_and_says_what_is_missing(tmp_path: Path) -> None:
    put_tool(tmp_path, "kubectl", {"": Says(err="error: current-context is not set\n", status=1)})
    ended = _run(tmp_path, "demo-failover", "--namespace", "elsewhere", "--kills", "2")
    assert (ended.status, ended.text) == (1, "hascheduler: error: current-context is not set\n")
    [call] = ended.calls
    assert call.startswith("kubectl --namespace elsewhere get pods ")


ROOT = Path(__file__).parents[3]
_BASH = "#!/usr/bin/env bash\n"
SCRIPTS = sorted(path for path in (ROOT / "scripts").iterdir() if path.read_text().startswith(_BASH))
SCRIPTS.append(ROOT / "k8s/make-secrets")
_LINES_MAX = {"make-secrets": 120, "kind-up": 140, "setup-venv": 40, "check-wheel": 90}


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
