"""The wait for the pods: what is told on the way, and what to look at when they do not come."""

import json
from pathlib import Path

import pytest

from hascheduler.errors import InvalidInput, WorldError
from kind.images import Image, build, read_images
from kind.rollout import wait
from kind.tools import Tools
from tests.scripted_tools import Says, put_tool

_LIST = "k8s/components/images/kustomization.yaml"


def _tools(folder: Path) -> Tools:
    return Tools("kind", str(folder / "kubectl"), str(folder / "docker"), "docker", {})


def test_pods_that_do_not_come_are_told_with_their_events_and_last_lines(tmp_path: Path) -> None:
    status = {"observedGeneration": 1, "readyReplicas": 1, "updatedReplicas": 3}
    workload = {"metadata": {"name": "scheduler", "generation": 1}, "spec": {"replicas": 3}, "status": status}
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
    bad = {"metadata": {"name": "scheduler-a"}, "status": {"phase": "Pending", "containerStatuses": [waiting]}}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    good = {"metadata": {"name": "scheduler-b"}, "status": ready}
    event = {"reason": "Failed", "message": "Back-off pulling image"}
    put_tool(
        tmp_path,
        "kubectl",
        {
            "get deployments,statefulsets": Says(out=json.dumps({"items": [workload]})),
            "get pods": Says(out=json.dumps({"items": [bad, good]})),
            "get events --field-selector involvedObject.name=scheduler-a": Says(out=json.dumps({"items": [event]})),
            "logs scheduler-a": Says(out="".join(f"line {number}\n" for number in range(20))),
        },
    )
    told: list[str] = []
    with pytest.raises(WorldError, match="not everything runs after 0 s: scheduler 1/3"):
        wait(_tools(tmp_path), told.append, 0)
    assert told[0] == "scheduler 1/3  (scheduler-a: ImagePullBackOff)"
    assert "    Failed: Back-off pulling image" in told
    assert "    line 19" in told
    assert not [line for line in told if "scheduler-b" in line]


def test_nothing_at_all_is_not_everything(tmp_path: Path) -> None:
    put_tool(tmp_path, "kubectl", {"get": Says(out='{"items": []}')})
    with pytest.raises(WorldError, match="not everything runs"):
        wait(_tools(tmp_path), lambda _: None, 0)


def test_a_build_that_changes_nothing_is_known(tmp_path: Path) -> None:
    put_tool(tmp_path, "docker", {"image inspect": Says(out="sha256:1\n"), "build": Says()})
    assert not build(_tools(tmp_path), tmp_path, Image("hascheduler:1", "scheduler"))


@pytest.mark.parametrize(
    ("reference", "full"),
    [
        ("mongo:7", "docker.io/library/mongo:7"),
        ("someone/mongo:7", "docker.io/someone/mongo:7"),
        ("registry.example.com/mongo:7", "registry.example.com/mongo:7"),
        ("localhost/mongo:7", "localhost/mongo:7"),
        ("host:5000/mongo:7", "host:5000/mongo:7"),
    ],
)
def test_the_whole_name_of_an_image(reference: str, full: str) -> None:
    assert Image(reference, None).full == full


def test_images_are_read_from_the_one_place(tmp_path: Path) -> None:
    (tmp_path / _LIST).parent.mkdir(parents=True)
    (tmp_path / _LIST).write_text(
        "images:\n"
        "  - {name: hascheduler, newTag: 9.9.9}\n"
        "  - {name: hascheduler-processor, newName: registry.example.com/p, newTag: '1'}\n"
        "  - {name: mongo, newTag: 7.0.1}\n"
    )
    assert [(image.reference, image.target) for image in read_images(tmp_path)] == [
        ("hascheduler:9.9.9", "scheduler"),
        ("registry.example.com/p:1", "processor"),
        ("mongo:7.0.1", None),
    ]


@pytest.mark.parametrize(
    "text", ["", "3", "images: 3", "images: [3]", "images: [{name: mongo, newTag: '1'}]", "images: [{name: x}]", "a: ["]
)
def test_a_list_of_images_that_makes_no_sense_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / _LIST).parent.mkdir(parents=True)
    (tmp_path / _LIST).write_text(text)
    with pytest.raises(InvalidInput, match=_LIST):
        read_images(tmp_path)
