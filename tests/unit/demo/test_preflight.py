"""What is missing or not allowed is said in one line before anything is touched; nonsense from kubectl ends in one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hascheduler.demo.kubernetes.kills import DELETE, FORCE, KILL
from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.demo.kubernetes.pods import Pods
from hascheduler.demo.kubernetes.preflight import PreflightResult, run_preflight
from hascheduler.errors import CallerError, HaschedulerError, WorldError
from tests.scripted_tools import Says, calls, put_tool

_NOT_FOUND = Says(err='Error from server (NotFound): namespaces "hascheduler" not found\n', status=1)
_FORBIDDEN = Says(err='Error from server (Forbidden): namespaces "hascheduler" is forbidden\n', status=1)
_NO = Says(out="no\n", status=1)
_YES = Says(out="yes\n")


def _deployment(name: str, *, replicas: int = 3, ready: int = 3, shares: bool = False) -> Says:
    container: dict[str, Any] = {"name": name, "ports": [{"name": "http", "containerPort": 8081}]}
    pod = {"containers": [container], **({"shareProcessNamespace": True} if shares else {})}
    return Says(
        out=json.dumps(
            {
                "metadata": {"name": name},
                "spec": {"replicas": replicas, "template": {"spec": pod}},
                "status": {"readyReplicas": ready} if ready else {},
            }
        )
    )


def _answers(**changed: Says) -> dict[str, Says]:
    named = {
        "namespace": ("get namespace", Says(out='{"metadata": {}}')),
        "scheduler": ("get deployment scheduler", _deployment("scheduler", shares=True)),
        "processor": ("get deployment processor", _deployment("processor", shares=True)),
        "exec": ("can-i create pods --subresource=exec", _YES),
        "forward": ("can-i create pods --subresource=portforward", _YES),
        "log": ("can-i get pods --subresource=log", _YES),
        "delete": ("can-i delete pods", _YES),
    }
    return {part: changed.get(name, usual) for name, (part, usual) in named.items()}


async def _check(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, Says], *, forwards: bool = True
) -> PreflightResult:
    put_tool(folder, "kubectl", answers)
    monkeypatch.setenv("PATH", str(folder))
    return await run_preflight(Kubectl("there", "hascheduler", patience_s=5), "hascheduler", forwards=forwards)


async def test_a_cluster_that_has_everything_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared = await _check(tmp_path, monkeypatch, _answers())
    assert (cleared.replicas, cleared.http_port, cleared.ways) == (3, 8081, (KILL, DELETE, FORCE))
    assert (cleared.processor_way, cleared.left_out) == (KILL, "")
    assert all(call.startswith("kubectl --context there --namespace hascheduler ") for call in calls(tmp_path))


@pytest.mark.parametrize(
    ("changed", "cleared", "said"),
    [
        ({"exec": _NO}, ((DELETE, FORCE), FORCE), "may not create pods/exec"),
        ({"scheduler": _deployment("scheduler")}, ((DELETE, FORCE), KILL), "scheduler do not share"),
        ({"processor": _deployment("processor")}, ((KILL, DELETE, FORCE), FORCE), ""),
        ({"namespace": _FORBIDDEN}, ((KILL, DELETE, FORCE), KILL), ""),
    ],
)
async def test_what_can_be_done_without_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, changed: dict[str, Says], cleared: object, said: str
) -> None:
    found = await _check(tmp_path, monkeypatch, _answers(**changed))
    assert (found.ways, found.processor_way) == cleared
    assert said in found.left_out
    assert bool(said) == bool(found.left_out)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"namespace": _NOT_FOUND}, "there is no namespace hascheduler"),
        (
            {"namespace": Says(err='error: context "there" does not exist\n', status=1)},
            'context "there" does not exist',
        ),
        ({"scheduler": _NOT_FOUND}, "there is no Deployment scheduler in namespace hascheduler"),
        ({"processor": _NOT_FOUND}, "there is no Deployment processor"),
        ({"scheduler": _FORBIDDEN}, "the Deployment scheduler can't be read"),
        ({"delete": _NO}, "may not delete pods in namespace hascheduler"),
        ({"log": _NO}, "may not get pods/log"),
        ({"forward": _NO}, "may not create pods/portforward"),
        ({"scheduler": _deployment("scheduler", replicas=1)}, "has 1 replicas"),
        ({"scheduler": _deployment("scheduler", ready=1)}, "not enough pods are ready"),
        ({"processor": _deployment("processor", ready=0)}, "not enough pods are ready"),
    ],
)
async def test_the_first_missing_thing_is_an_error_and_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Says], said: str
) -> None:
    with pytest.raises(CallerError) as refused:
        await _check(tmp_path, monkeypatch, _answers(**changed))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not [call for call in calls(tmp_path) if " get " not in call and " auth " not in call]


async def test_with_an_address_no_port_has_to_be_forwarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await _check(tmp_path, monkeypatch, _answers(forward=_NO), forwards=False)).replicas == 3


async def test_without_kubectl_the_error_says_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CallerError, match=r"kubectl: is not on the PATH; expected https://kubernetes\.io/"):
        Kubectl(None, None)


@pytest.mark.parametrize("garbage", ["", "Unable to connect", "[]", "3", '{"metadata": ', "\x00\xff", "[" * 10_000])
@pytest.mark.parametrize("call", ["namespace", "scheduler"])
async def test_garbage_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, garbage: str, call: str) -> None:
    with pytest.raises(WorldError, match="answered no JSON object") as failed:
        await _check(tmp_path, monkeypatch, _answers(**{call: Says(out=garbage)}))
    assert len(str(failed.value)) < 200


@pytest.mark.parametrize(
    "deployment", ['{"metadata": {"name": 3}}', '{"spec": []}', '{"spec": {"replicas": "three"}}', "{}"]
)
async def test_what_is_no_deployment_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deployment: str
) -> None:
    with pytest.raises(HaschedulerError) as failed:
        await _check(tmp_path, monkeypatch, _answers(scheduler=Says(out=deployment)))
    assert "\n" not in str(failed.value)


async def test_a_cluster_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_tool(tmp_path, "kubectl", {"get namespace": Says(hangs_s=600)})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorldError, match=r"kubectl get namespace hascheduler did not end within 0\.3 s"):
        await run_preflight(Kubectl(None, None, patience_s=0.3), "hascheduler", forwards=True)


@pytest.mark.parametrize(
    "pods",
    [
        "{}",
        '{"items": 3}',
        '{"items": [3]}',
        '{"items": [{}]}',
        '{"items": [{"metadata": {"name": "a", "uid": "b", "labels": []}}]}',
        '{"items": [{"metadata": {"name": "a", "uid": "b", "labels": {"app.kubernetes.io/component": "scheduler"}},'
        ' "status": {"containerStatuses": [{"name": "scheduler", "ready": true, "restartCount": "x"}]}}]}',
    ],
)
async def test_pods_that_make_no_sense_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pods: str) -> None:
    put_tool(tmp_path, "kubectl", {"get pods": Says(out=pods)})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorldError, match="kubectl get pods"):
        await Pods(Kubectl(None, None)).look()
