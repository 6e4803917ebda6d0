"""The rules: their form, what they ask for, and that the texts in them can be followed."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click import Group
from typer.main import get_command

from hascheduler.cli.app import app
from hascheduler.settings import Settings, variable
from tests.unit.monitoring import queries
from tests.unit.monitoring.rules import ALERTS, GROUPS, RECORDED, RULES, write_rules

SCRAPE_INTERVAL = timedelta(seconds=15)
COMMAND = re.compile(r"(?:^ *hs|`hs|`hascheduler) ((?:[a-z-]+ ?)+)", re.MULTILINE)
NAMES = [rule.get("alert") or rule["record"] for rule in RULES]


def test_prometheus_takes_them(promtool: Callable[..., str], tmp_path: Path) -> None:
    assert promtool("check", "rules", "--lint=all", "--lint-fatal", write_rules(tmp_path / "rules.yaml", GROUPS)) == ""


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_expressions_ask_for_what_is_told(rule: dict[str, Any]) -> None:
    tree = queries.parsed(rule["expr"])
    known = queries.told() | {name: recorded_labels(name) for name in RECORDED}
    assert queries.unknown(tree, known) == set()


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_windows_hold_four_scrapes(rule: dict[str, Any]) -> None:
    assert all(window >= 4 * SCRAPE_INTERVAL for window in queries.ranges(queries.parsed(rule["expr"])))


@pytest.mark.parametrize("alert", ALERTS)
def test_alerts_say_what_they_mean_and_what_to_do(alert: str) -> None:
    rule = ALERTS[alert]
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert rule["labels"] == {"severity": rule["labels"]["severity"]}
    description = rule["annotations"]["description"]
    match rule["labels"]["severity"]:
        case "page":
            assert "Act now." in description
        case "ticket":
            assert "It can wait" in description
        case severity:
            pytest.fail(f"{severity} is neither page nor ticket")
    for part in ("Check:", "Do:", "Don't:"):
        assert part in rule["annotations"]["runbook"]
    # So that their text can be compared as it is (`test_alerts`); the numbers are in the summary.
    assert "{{" not in description + rule["annotations"]["runbook"]


@pytest.mark.parametrize("alert", ALERTS)
def test_commands_in_runbooks_exist(alert: str) -> None:
    annotations = ALERTS[alert]["annotations"]
    for command in COMMAND.findall(annotations["runbook"] + annotations["description"]):
        here: Any = get_command(app)
        for word in command.split():
            if not isinstance(here, Group):
                break
            found = here.get_command(None, word)  # type: ignore[arg-type]  # it looks at the name alone
            assert found is not None, f"hascheduler {command}"
            here = found


def test_settings_in_runbooks_exist() -> None:
    texts = "".join(text for rule in ALERTS.values() for text in rule["annotations"].values())
    named = set(re.findall(r"HASCHEDULER_[A-Z_]+", texts))
    assert named
    known = {variable(name) for name in Settings.model_fields}
    assert named - known == {"HASCHEDULER_TOKEN_FILE"}  # the command line's own


def recorded_labels(record: str) -> set[str]:
    """A recorded name begins with its labels."""
    level = record.split(":", maxsplit=1)[0]
    known = {label for labels in queries.told().values() for label in labels}
    return {label for label in known if label in level.split("_")}
