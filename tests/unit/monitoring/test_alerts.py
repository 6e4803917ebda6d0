"""Each alert fires when it should and only then, as Prometheus itself evaluates the cases of ``alerts.yaml``."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tiers import spread
from tests.unit.monitoring.rules import ALERTS, GROUPS, write_rules

# Without types: `0x60` is 0 and sixty more, not a number.
CASES: dict[str, dict[str, dict[str, Any]]] = {
    f"Hascheduler{alert}": cases
    for alert, cases in yaml.load(
        Path(__file__).with_name("alerts.yaml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader
    ).items()
}
SERIES = re.compile(r"(?P<name>\w+)(\{(?P<labels>.*)\})?( @(?P<process>\S+))?")


@pytest.mark.parametrize("alert", spread(ALERTS, check=2))
def test_alerts_fire_when_they_should_and_only_then(alert: str, promtool: Callable[..., str], tmp_path: Path) -> None:
    # Other groups change nothing and take time. Prometheus runs groups side by side; here the recording rules go first.
    recording = next(group for group in GROUPS if group["name"] == "hascheduler-recording")
    its_own = next(group for group in GROUPS if ALERTS[alert] in group["rules"])
    test = {
        "rule_files": [str(write_rules(tmp_path / "rules.yaml", [recording, its_own]))],
        "evaluation_interval": "15s",
        "group_eval_order": [recording["name"], its_own["name"]],
        "tests": [_test(alert, title, **case) for title, case in CASES[alert].items()],
    }
    written = tmp_path / "test.yaml"
    written.write_text(yaml.safe_dump(test), encoding="utf-8")
    assert promtool("test", "rules", written) == ""


def test_every_alert_is_shown_to_fire_and_to_keep_quiet() -> None:
    assert set(CASES) == set(ALERTS)
    for alert, cases in CASES.items():
        assert {"fires" in case for case in cases.values()} == {True, False}, alert


def _test(
    alert: str, title: str, *, at: str, fires: str = "", labels: Any = None, process: str = "", **series: str
) -> dict[str, Any]:
    if labels is None:
        labels = _of_process(process) if process else {"namespace": "hascheduler"}
    rule = ALERTS[alert]
    expected = {
        "exp_labels": {**rule["labels"], **labels},
        "exp_annotations": {**rule["annotations"], "summary": fires},
    }
    return {
        "name": title,
        "interval": "15s",
        "input_series": [{"series": _scraped(told), "values": values} for told, values in series.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": [expected] if fires else []}],
    }


def _scraped(series: str) -> str:
    """The series with the labels that scraping adds."""
    found = SERIES.fullmatch(series)
    assert found is not None, series
    labels = _of_process(found["process"] or "scheduler-0") | dict(re.findall(r'(\w+)="(.*?)"', found["labels"] or ""))
    written = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{found['name']}{{{written}}}"


def _of_process(name: str) -> dict[str, str]:
    return {"namespace": "hascheduler", "pod": name, "instance": name, "job": f"hascheduler-{name.rpartition('-')[0]}"}
