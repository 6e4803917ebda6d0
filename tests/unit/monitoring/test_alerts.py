"""Each alert fires when it should and only then, as Prometheus itself evaluates it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tiers import spread
from tests.unit.monitoring.cases import api, audit, fires, leadership, processors, queue, stores
from tests.unit.monitoring.cases.case import Case
from tests.unit.monitoring.rules import ALERTS, GROUPS, write_rules

CASES = [case for room in (leadership, fires, queue, stores, api, processors, audit) for case in room.CASES]


@pytest.mark.parametrize("alert", spread(ALERTS, check=6))
def test_alerts_fire_when_they_should_and_only_then(alert: str, promtool: Callable[..., str], tmp_path: Path) -> None:
    # Other groups change nothing and take time. Prometheus runs groups side by side; here the recording rules go first.
    recording = next(group for group in GROUPS if group["name"] == "hascheduler-recording")
    its_own = next(group for group in GROUPS if ALERTS[alert] in group["rules"])
    test = {
        "rule_files": [str(write_rules(tmp_path / "rules.yaml", [recording, its_own]))],
        "evaluation_interval": "15s",
        "group_eval_order": [recording["name"], its_own["name"]],
        "tests": [_test(case) for case in CASES if f"Hascheduler{case.alert}" == alert],
    }
    written = tmp_path / "test.yaml"
    written.write_text(yaml.safe_dump(test), encoding="utf-8")
    assert promtool("test", "rules", written) == ""


def test_every_alert_is_shown_to_fire_and_to_keep_quiet() -> None:
    fires = {f"Hascheduler{case.alert}" for case in CASES if case.fires}
    quiet = {f"Hascheduler{case.alert}" for case in CASES if not case.fires}
    assert fires == quiet == set(ALERTS)


def _test(case: Case) -> dict[str, Any]:
    name = f"Hascheduler{case.alert}"
    rule = ALERTS[name]
    expected = [
        {
            "exp_labels": {**rule["labels"], **fires.labels},
            "exp_annotations": {**rule["annotations"], "summary": fires.summary},
        }
        for fires in case.fires
    ]
    return {
        "name": case.title,
        "interval": "15s",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [{"eval_time": case.at, "alertname": name, "exp_alerts": expected}],
    }
