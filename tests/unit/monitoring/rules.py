"""The rules as people wrote them: the spec of a PrometheusRule, which is what a Prometheus rules file has."""

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[3] / "k8s" / "monitoring"
GROUPS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "rules.yaml").read_text(encoding="utf-8"))["spec"]["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = {rule["record"]: rule for rule in RULES if "record" in rule}


def write_rules(path: Path, groups: list[dict[str, Any]]) -> Path:
    """Write the groups as a Prometheus rules file."""
    path.write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
    return path
