"""Every generated file, with the text it should have."""

import json
from pathlib import Path

from k8s.monitoring.generate.dashboard import dashboard
from k8s.monitoring.generate.rule_object import rule_object

FOLDER = Path(__file__).parent.parent


def outputs() -> dict[Path, str]:
    return {
        FOLDER / "prometheus-rule.yaml": rule_object(sorted((FOLDER / "rules").glob("*.yaml"))),
        FOLDER / "dashboard.json": json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n",
    }
