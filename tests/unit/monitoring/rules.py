"""The rules as people wrote them."""

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[3] / "k8s" / "monitoring"
FILES = sorted((FOLDER / "rules").glob("*.yaml"))
GROUPS: list[dict[str, Any]] = [
    group for file in FILES for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = {rule["record"]: rule for rule in RULES if "record" in rule}
