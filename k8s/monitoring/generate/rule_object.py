"""The rules as one PrometheusRule, for the operator: all groups of the plain rules files, in the files' order."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

_HEAD = """\
# Generated from rules/*.yaml by `python -m k8s.monitoring.generate`: change those, not this.
# An operator that selects rules by a label (often `release: …`) wants it in kustomization.yaml.
"""


def rule_object(files: Iterable[Path]) -> str:
    groups = [group for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    return _HEAD + yaml.dump(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": "hascheduler"},
            "spec": {"groups": groups},
        },
        Dumper=_Readable,
        sort_keys=False,
        allow_unicode=True,
        width=120,
    )


class _Readable(yaml.SafeDumper):
    """Texts of several lines stay texts of several lines."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _text)
