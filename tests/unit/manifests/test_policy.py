"""Every rule holds for every overlay, and every rule finds the mistakes that are planted for it."""

from collections.abc import Callable

import pytest

from tests.manifests import rules
from tests.manifests.mutants import PLANTED
from tests.manifests.objects import Objects
from tests.manifests.rendering import KIND, VARIANTS, rendered


@pytest.mark.parametrize("folder", VARIANTS)
def test_the_rendered_objects_keep_the_rules(folder: str) -> None:
    objects = rendered(folder)
    found = {rule.__name__: list(rule(objects)) for rule in rules.ALL}
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    ("rule", "spoil"), PLANTED, ids=[f"{rule.__name__}-{spoil.__name__}" for rule, spoil in PLANTED]
)
def test_the_rule_finds_what_is_planted(rule: rules.Rule, spoil: Callable[[Objects], None]) -> None:
    objects = rendered(KIND).copy()
    spoil(objects)
    assert list(rule(objects)) != []


def test_for_every_rule_something_is_planted() -> None:
    assert {rule for rule, _ in PLANTED} == set(rules.ALL)
