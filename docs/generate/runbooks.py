"""The runbook of every alert, from the rules that Prometheus reads."""

import json
from pathlib import Path
from typing import Any

import yaml

from docs.generate.markdown import code, fenced, head, prose

_RULES = Path(__file__).parents[2] / "k8s" / "monitoring" / "rules.yaml"
_SET_UP = (
    "NAMESPACE=hascheduler  # or what the alert's label namespace says",
    'hs() { kubectl -n "$NAMESPACE" exec deploy/scheduler -- env'
    ' HASCHEDULER_TOKEN_FILE=/run/secrets/hascheduler/admin-token hascheduler "$@"; }',
)
"""The set-up of each runbook's commands, which the page shows once."""

_INTRO = """\
Each alert of `k8s/monitoring/rules.yaml` needs somebody now (`page`) or can wait (`ticket`), and lists what to check,
what to do and what not to do. [Kubernetes](kubernetes.md#metrics-alerts-a-dashboard) explains how to install the rules.
The commands need:
"""


def page() -> str:
    parts = [head("Runbooks", "k8s/monitoring/rules.yaml", _INTRO), fenced("\n".join(_SET_UP))]
    for rule in _alerts():
        severity, after = rule["labels"]["severity"], rule.get("for", "0s")
        parts += [
            f"## {_name(rule)}\n",
            f"Severity {code(severity)}, after {code(str(after))}. "
            + prose(" ".join(rule["annotations"]["description"].split()))
            + "\n",
            fenced(rule["expr"], "promql"),
            fenced(_without_set_up(rule["annotations"]["runbook"])),
        ]
    return "\n".join(parts)


def asset() -> str:
    """Return the runbooks by the alert's name, which the dashboard shows without another host."""
    return json.dumps({_name(rule): rule["annotations"]["runbook"].strip() for rule in _alerts()}, indent=1) + "\n"


def _alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(_RULES.read_text(encoding="utf-8"))["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def _name(rule: dict[str, Any]) -> str:
    return str(rule["alert"])


def _without_set_up(runbook: str) -> str:
    return "\n".join(line for line in runbook.splitlines() if line.strip() not in _SET_UP)
