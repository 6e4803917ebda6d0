"""Each alert fires when it should and only then, by Prometheus's own evaluation of the files as they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tiers import spread
from tests.unit.monitoring.cases import api, audit, fires, leadership, processors, queue, stores
from tests.unit.monitoring.cases.case import Case
from tests.unit.monitoring.rules import ALERTS, FILE_OF, FILES, GROUPS, RECORDING

CASES = [case for room in (leadership, fires, queue, stores, api, processors, audit) for case in room.CASES]


@pytest.mark.parametrize("alert", spread(ALERTS, check=6))
def test_alerts_fire_when_they_should_and_only_then(alert: str, promtool: Callable[..., str], tmp_path: Path) -> None:
    test = {
        # What others say changes nothing of it, and would be evaluated at each step too.
        "rule_files": [str(file) for file in FILES if file in (FILE_OF[alert], RECORDING)],
        "evaluation_interval": "15s",
        # What records goes first; Prometheus runs groups side by side.
        "group_eval_order": sorted((group["name"] for group in GROUPS), key=lambda name: "recording" not in name),
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
