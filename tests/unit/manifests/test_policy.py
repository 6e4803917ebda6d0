"""Every rule holds for every overlay, and every rule finds the mistakes that are planted for it."""

import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.manifests import rules
from tests.manifests.mutants import PLANTED
from tests.manifests.objects import Objects
from tests.manifests.rendering import KIND, PRODUCTION, ROOT, TRIAL, VARIANTS, combine, render, rendered
from tests.tiers import in_tier


@pytest.mark.parametrize("folder", VARIANTS)
def test_the_rendered_objects_keep_the_rules(folder: str) -> None:
    assert rules.faults_in(rendered(folder)) == {}


_MISTAKES = [
    pytest.param(rule, spoil, id=f"{rule.__name__}-{mistake}")
    for rule, mistakes in PLANTED.items()
    for mistake, spoil in mistakes.items()
]


@pytest.mark.parametrize(("rule", "spoil"), _MISTAKES)
def test_the_rule_finds_what_is_planted(rule: rules.Rule, spoil: Callable[[Objects], None]) -> None:
    objects = rendered(KIND).copy()
    spoil(objects)
    assert list(rule(objects)) != []


_COMPONENTS = sorted({path.name for path in (ROOT / "k8s/components").iterdir()} - {"images", "autoscaled"})
_SCALERS = ("processor-hpa", "processor-keda")
_SETS = [
    [name for name in _COMPONENTS if name != other and not name.startswith(left_out)]
    for other, left_out in product(_SCALERS, ("nothing", "external-"))
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(in_tier(check=3, test=12, long=40)))
def test_components_do_the_same_in_any_order_and_keep_the_rules(seed: int, tmp_path: Path) -> None:
    """All at once, in both orders; then some of them, picked by ``seed``."""
    random = Random(seed)
    among = _SETS[seed % len(_SETS)]
    some = among if seed < len(_SETS) else random.sample(among, random.randrange(2, len(among)))
    one, other = combine(some, tmp_path), combine(some[::-1], tmp_path)
    assert _unordered(one.all) == _unordered(other.all), some
    assert rules.faults_in(one) == {}, some


@pytest.mark.slow
@pytest.mark.parametrize(("overlay", "place"), list(product((TRIAL, PRODUCTION), (0, 99))))
def test_an_overlay_takes_servers_that_are_there_already(overlay: str, place: int, tmp_path: Path) -> None:
    """Named before its other components or after them."""
    shutil.copytree(ROOT / "k8s", tmp_path / "k8s")
    kustomization = tmp_path / overlay / "kustomization.yaml"
    content = yaml.safe_load(kustomization.read_text())
    content["components"][place:place] = [f"../../components/external-{name}" for name in ("mongodb", "rabbitmq")]
    kustomization.write_text(yaml.safe_dump(content))
    objects = render(tmp_path / overlay)
    assert objects.of("StatefulSet") == []
    assert rules.faults_in(objects) == {}


def _unordered(value: Any) -> Any:
    """Lists by what they hold: the order of variables, volumes and objects is all that may differ."""
    match value:
        case dict():
            return {key: _unordered(each) for key, each in value.items()}
        case list():
            return sorted(map(_unordered, value), key=repr)
    return value


def test_for_every_rule_something_is_planted() -> None:
    assert set(PLANTED) == set(rules.ALL)
    assert all(PLANTED.values())
