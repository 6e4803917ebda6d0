"""The rules as people wrote them."""

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[3] / "k8s" / "monitoring"
FILES = sorted((FOLDER / "rules").glob("*.yaml"))
RECORDING = FOLDER / "rules" / "recording.yaml"
_IN_FILES: dict[Path, list[dict[str, Any]]] = {
    file: yaml.safe_load(file.read_text(encoding="utf-8"))["groups"] for file in FILES
}
GROUPS = [group for groups in _IN_FILES.values() for group in groups]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
FILE_OF = {
    rule["alert"]: file
    for file, groups in _IN_FILES.items()
    for group in groups
    for rule in group["rules"]
    if "alert" in rule
}
RECORDED = {rule["record"]: rule for rule in RULES if "record" in rule}
