"""The runbook of every alert, from the rules that Prometheus reads."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from docs.generate.markdown import code, fenced, head, prose, table

_RULES = Path(__file__).parents[2] / "k8s" / "monitoring" / "rules.yaml"
_INTRO = """\
Each alert of `k8s/monitoring/rules.yaml` says whether to get up (`page`) or whether it can wait (`ticket`), and its
runbook what to look at, what to do and what not to do. [Kubernetes](kubernetes.md) says how to install the rules.
"""
_LABELS = re.compile(r"\{\{ with \$labels\.namespace \}\}.*?\{\{ end \}\}", re.DOTALL)


def page() -> str:
    alerts = _alerts()
    parts = [head("Runbooks", "k8s/monitoring/rules.yaml", _INTRO)]
    rows = ((f"[{_name(rule)}](#{_name(rule).lower()})", rule["labels"]["severity"], _summary(rule)) for rule in alerts)
    parts.append(table(("alert", "severity", "says"), rows))
    for rule in alerts:
        parts += [
            f"## {_name(rule)}\n",
            f"Severity {code(rule['labels']['severity'])}, after {code(str(rule.get('for', '0s')))}.",
            prose(" ".join(rule["annotations"]["description"].split())) + "\n",
            fenced(rule["expr"], "promql"),
            fenced(rule["annotations"]["runbook"]),
        ]
    return "\n".join(parts)


def asset() -> str:
    """By the alert's name, as the dashboard shows them: it works where no other host can be reached."""
    return json.dumps({_name(rule): rule["annotations"]["runbook"].strip() for rule in _alerts()}, indent=1) + "\n"


def _alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(_RULES.read_text(encoding="utf-8"))["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def _name(rule: dict[str, Any]) -> str:
    return str(rule["alert"])


def _summary(rule: dict[str, Any]) -> str:
    text = _LABELS.sub("", rule["annotations"]["summary"])
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"*\1*", text)
    text = text.replace("{{ or $labels.pod $labels.instance }}", "*instance*")
    return re.sub(r"\{\{ \$value[^}]*\}\}", "*n*", text)
