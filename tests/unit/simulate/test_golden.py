"""Scenarios whose outcomes are known must come out exactly so, in every list and in its order."""

import json
from pathlib import Path
from typing import Any

import pytest

from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.run import as_document, run

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.json"))


def test_the_golden_files_are_there() -> None:
    assert len(GOLDEN) >= 13


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_scenario_comes_out_as_it_must(path: Path) -> None:
    golden: dict[str, Any] = json.loads(path.read_text("utf-8"))
    found = as_document(run(parse_scenario(json.dumps(golden["scenario"]))))
    for name, expected in golden["expect"].items():
        assert found[name] == expected, name
    assert set(found) == set(golden["expect"])
