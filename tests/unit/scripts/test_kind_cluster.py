"""The cluster's file has the nodes to spread over, and leads to the port at which the overlay's Service listens."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]


def _cluster() -> Any:
    return yaml.safe_load((ROOT / "kind" / "cluster.yaml").read_text())


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
