"""The cluster's file holds only what kind knows, and leads to the port at which the overlay's Service listens."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
_PORT_MAPPING = {"containerPort": int, "hostPort": int, "listenAddress": str, "protocol": str}
_MOUNT = {"containerPath": str, "hostPath": str, "readOnly": bool, "selinuxRelabel": bool, "propagation": str}
_PATCHES = {"kubeadmConfigPatches": [str], "kubeadmConfigPatchesJSON6902": [dict]}
_NODE = {
    "role": str,
    "image": str,
    "labels": dict,
    "extraMounts": [_MOUNT],
    "extraPortMappings": [_PORT_MAPPING],
    **_PATCHES,
}
_CLUSTER = {
    "kind": str,
    "apiVersion": str,
    "name": str,
    "nodes": [_NODE],
    "networking": dict,
    "featureGates": dict,
    "runtimeConfig": dict,
    "containerdConfigPatches": [str],
    "containerdConfigPatchesJSON6902": [str],
    **_PATCHES,
}
"""The fields of kind.x-k8s.io/v1alpha4, as pkg/apis/config/v1alpha4/types.go of kind has them."""


def _problems(value: Any, known: Any, path: str) -> list[str]:
    match known:
        case dict():
            if not isinstance(value, dict):
                return [f"{path} is no object"]
            unknown = [f"{path}.{name} is unknown" for name in value if name not in known]
            inner = [_problems(value[name], known[name], f"{path}.{name}") for name in value if name in known]
            return unknown + [problem for problems in inner for problem in problems]
        case [of]:
            if not isinstance(value, list):
                return [f"{path} is no list"]
            return [problem for one in value for problem in _problems(one, of, f"{path}[]")]
        case _:
            return [] if isinstance(value, known) else [f"{path} is no {known.__name__}"]


def _cluster() -> Any:
    return yaml.safe_load((ROOT / "kind" / "cluster.yaml").read_text())


def test_only_fields_that_kind_knows() -> None:
    assert _problems(_cluster(), _CLUSTER, "") == []


def test_what_kind_does_not_know_would_be_seen() -> None:
    broken = {"kind": "Cluster", "node": [], "nodes": [{"role": 3, "extraPortMappings": [{"port": 80}]}]}
    assert len(_problems(broken, _CLUSTER, "")) == 3


def test_one_node_governs_and_three_work() -> None:
    cluster = _cluster()
    assert (cluster["kind"], cluster["apiVersion"], cluster["name"]) == (
        "Cluster",
        "kind.x-k8s.io/v1alpha4",
        "hascheduler",
    )
    assert [node["role"] for node in cluster["nodes"]] == ["control-plane", "worker", "worker", "worker"]


def test_the_port_leads_to_the_service() -> None:
    service = yaml.safe_load((ROOT / "k8s/overlays/kind/service.yaml").read_text())
    mappings = [one for node in _cluster()["nodes"] for one in node.get("extraPortMappings", ())]
    assert [one["containerPort"] for one in mappings] == [port["nodePort"] for port in service["spec"]["ports"]]
    assert [f"http://{one['listenAddress']}:{one['hostPort']}" for one in mappings] == ["http://127.0.0.1:8080"]
