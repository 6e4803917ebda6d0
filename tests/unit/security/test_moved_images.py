"""Images that are pinned by digest: one file does it for every container there is."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.manifests import rules
from tests.manifests.rendering import ROOT, VARIANTS, render
from tests.tiers import spread

LIST = "k8s/components/images/kustomization.yaml"


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifests with a made-up digest for each image: what the real ones are, only a registry can tell."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is missing; scripts/ensure-kubectl says how to install it")
    root = tmp_path_factory.mktemp("pinned")
    shutil.copytree(ROOT / "k8s", root / "k8s", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests/manifests/variants", root / "tests/manifests/variants")
    component = yaml.safe_load((root / LIST).read_text())
    for number, image in enumerate(component["images"]):
        image["digest"] = f"sha256:{number:064x}"
    (root / LIST).write_text(yaml.safe_dump(component))
    return root


@pytest.mark.parametrize("folder", spread(VARIANTS, check=2))
def test_every_container_of_every_overlay_is_pinned_by_the_one_file(pinned: Path, folder: str) -> None:
    objects = render(pinned / folder)
    digests = {f"{image['name']}:{image['newTag']}": image["digest"]
               for image in yaml.safe_load((pinned / LIST).read_text())["images"]}  # fmt: skip
    used = {container.name: container.spec["image"] for container in objects.containers()}
    assert any("bootstrap" in name for name in used)
    for name, image in used.items():
        tagged, at, digest = image.partition("@")
        assert (at, digest) == ("@", digests.get(tagged)), f"{name}: {image}"
    # And whatever else must hold goes on holding.
    assert [problem for rule in rules.ALL for problem in rule(objects)] == []
