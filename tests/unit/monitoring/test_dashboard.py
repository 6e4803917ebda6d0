"""The dashboard: every panel can be read and asks for what processes tell."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.monitoring import queries
from tests.unit.monitoring.rules import FOLDER

BOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
ALL = BOARD["panels"]
PANELS = [panel for panel in ALL if panel["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
UNITS = {"none", "s", "ops", "reqps", "bytes", "percentunit", "bool_yes_no"}
"""Those of Grafana's that the panels may use; it shows an unknown one as a suffix."""


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_panels_say_what_good_looks_like(panel: dict[str, Any]) -> None:
    assert "Healthy:" in panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    references = [target["refId"] for target in panel["targets"]]
    assert len(set(references)) == len(references)


@pytest.mark.parametrize(("title", "target"), TARGETS, ids=lambda value: value if isinstance(value, str) else "")
def test_queries_ask_for_what_is_told(title: str, target: dict[str, Any]) -> None:
    tree = queries.parsed(target["expr"])
    assert queries.unknown(tree, queries.told()) == set(), title
    assert all("namespace" in {m.name for m in s.matchers.matchers} for s in queries.selectors(tree)), title


def test_prometheus_takes_the_queries(promtool: Callable[..., str], tmp_path: Path) -> None:
    asked = {queries.without_variables(target["expr"]) for _, target in TARGETS}
    asked |= {queries.without_variables(note["expr"]) for note in BOARD["annotations"]["list"]}
    rules = [{"record": f"panel_{number}", "expr": query} for number, query in enumerate(sorted(asked))]
    written = tmp_path / "panels.yaml"
    written.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    assert promtool("check", "rules", written) == ""


def test_every_metric_of_ours_is_shown_somewhere() -> None:
    shown = {selector.name for _, target in TARGETS for selector in queries.selectors(queries.parsed(target["expr"]))}
    assert queries.ours() - shown == set()
