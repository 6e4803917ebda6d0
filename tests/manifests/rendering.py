"""What `kubectl kustomize` makes of a folder, once for all tests."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.manifests.objects import Objects

ROOT = Path(__file__).parents[2]
KIND = "k8s/overlays/kind"
TRIAL = "k8s/overlays/trial"
PRODUCTION = "k8s/overlays/production"
LEASE = "tests/manifests/variants/kubernetes-lease"
EXTERNAL = "tests/manifests/variants/external"
HTTPS = "tests/manifests/variants/https"
EXTERNAL_ELSEWHERE = "tests/manifests/variants/production-elsewhere"
ELSEWHERE = "tests/manifests/variants/another-namespace"
SHARDS = "tests/manifests/variants/shards"
INGRESS = "tests/manifests/variants/ingress"
GATEWAY = "tests/manifests/variants/gateway"
VARIANTS = (
    KIND,
    TRIAL,
    PRODUCTION,
    LEASE,
    EXTERNAL,
    ELSEWHERE,
    HTTPS,
    EXTERNAL_ELSEWHERE,
    SHARDS,
    INGRESS,
    GATEWAY,
    "tests/manifests/variants/queue-scaled",
)

SHORT_LIVED = {"GOGC": "400"}
"""Programs in Go that live for less than a second spend a third of it on collecting what they leave."""


def rendered(folder: str) -> Objects:
    """The objects of ``folder``; a test that may change them takes `Objects.copy`."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is missing; scripts/ensure-kubectl says how to install it")
    return _rendered(folder)


@cache
def _rendered(folder: str) -> Objects:
    return render(ROOT / folder)


def combine(components: Sequence[str], folder: Path) -> Objects:
    """The base with these components, in this order."""
    k8s = os.path.relpath(ROOT / "k8s", folder.resolve())
    kustomization = {
        "resources": [f"{k8s}/base"],
        "components": [f"{k8s}/components/{name}" for name in ("images", *components)],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return render(folder)


def render(folder: Path) -> Objects:
    """The objects of any folder, made again at each call."""
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)],
        env={**os.environ, **SHORT_LIVED},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, f"{folder}: {done.stderr[:2_000]}"
    assert not done.stderr, f"{folder}: {done.stderr}"
    return Objects([document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document])
