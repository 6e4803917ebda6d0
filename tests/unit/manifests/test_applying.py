"""An apply over what another release has left, forth and back: the API server refuses none of it."""

from pathlib import Path

import pytest

from tests.manifests.applying import refused
from tests.manifests.objects import Objects
from tests.manifests.rendering import PRODUCTION, ROOT, TRIAL, VARIANTS, render, rendered
from tests.tiers import spread

_NEXT = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [before]
images:
  - {name: hascheduler, newTag: 99.0.0}
  - {name: hascheduler-processor, newTag: 99.0.0}
  - {name: mongo, newTag: 99.0.0}
  - {name: rabbitmq, newTag: 99.0.0}
configMapGenerator:
  - name: hascheduler-settings
    namespace: NAMESPACE
    behavior: merge
    literals: [HASCHEDULER_LOG_LEVEL=debug]
"""


@pytest.mark.parametrize("folder", spread(VARIANTS, check=2))
def test_an_upgrade_and_a_rollback_are_applied_whole(folder: str, tmp_path: Path) -> None:
    before = rendered(folder)
    after = _next(folder, before, tmp_path)
    images = {container.spec["image"].rpartition(":")[2] for container in after.containers()}
    assert images == {"99.0.0"}
    assert list(refused(before, after)) == []
    assert list(refused(after, before)) == []


def test_the_trial_cannot_become_production_in_place() -> None:
    """As docs/operations/kubernetes.md says, which names the way around it."""
    sets = ("mongodb", "rabbitmq")
    expected = [f"StatefulSet/{name}: volumeClaimTemplates can't change" for name in sets]
    assert sorted(refused(rendered(TRIAL), rendered(PRODUCTION))) == expected


def _next(folder: str, before: Objects, tmp_path: Path) -> Objects:
    [namespace] = before.of("Namespace")
    (tmp_path / "before").symlink_to(ROOT / folder)
    (tmp_path / "kustomization.yaml").write_text(_NEXT.replace("NAMESPACE", namespace["metadata"]["name"]))
    return render(tmp_path)
