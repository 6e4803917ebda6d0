"""The objects for the cluster, as kustomize renders them."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests.objects import selects
from tests.manifests.rendering import KIND, rendered
from tests.unit.monitoring.rules import FOLDER, GROUPS, write_rules

COMPONENTS = {"scheduler": "health", "processor": "health", "rabbitmq": "prometheus"}


@pytest.fixture(scope="module")
def objects() -> dict[tuple[str, str], dict[str, Any]]:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is missing; scripts/ensure-kubectl installs it")
    rendered = subprocess.run([kubectl, "kustomize", str(FOLDER)], capture_output=True, text=True, check=True).stdout
    return {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(rendered)}


@pytest.mark.parametrize(("component", "port"), COMPONENTS.items())
def test_monitors_select_the_pods_and_name_the_job(
    component: str, port: str, objects: dict[tuple[str, str], dict[str, Any]]
) -> None:
    monitor = objects["PodMonitor", component]["spec"]
    [pod] = [pod for pod in rendered(KIND).pods() if pod.labels["app.kubernetes.io/component"] == component]
    assert selects(monitor["selector"], pod.labels)
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"], endpoint["interval"]) == (port, "/metrics", "15s")
    assert port in pod.ports
    assert endpoint["relabelings"] == [
        {"targetLabel": "job", "replacement": f"hascheduler-{component}"},
        {"sourceLabels": ["__meta_kubernetes_pod_name"], "targetLabel": "instance"},
    ]


def test_the_sidecar_finds_the_dashboard(objects: dict[tuple[str, str], dict[str, Any]]) -> None:
    found = objects["ConfigMap", "hascheduler-dashboard"]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"]["hascheduler.json"] == (FOLDER / "dashboard.json").read_text(encoding="utf-8")


def test_the_plain_configuration_gives_the_same_labels(promtool: Callable[..., str], tmp_path: Path) -> None:
    written = yaml.safe_load((FOLDER / "prometheus.yaml").read_text(encoding="utf-8"))
    (scrape,) = written["scrape_configs"]
    made = {rule["target_label"]: rule for rule in scrape["relabel_configs"] if "target_label" in rule}
    assert set(made) == {"job", "namespace", "pod", "instance"}
    assert made["job"]["replacement"] == "hascheduler-$1"
    # Debian's build knows no Kubernetes; all else is checked as it is.
    assert scrape.pop("kubernetes_sd_configs") == [{"role": "pod", "namespaces": {"names": ["hascheduler"]}}]
    scrape["static_configs"] = [{"targets": ["127.0.0.1:9090"]}]
    (rules,) = written["rule_files"]
    write_rules(tmp_path / rules, GROUPS)
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    assert promtool("check", "config", tmp_path / "prometheus.yaml") == ""
