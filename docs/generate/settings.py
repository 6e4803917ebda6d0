"""Every environment variable: those of `Settings`, and those that one command or handler reads by itself."""

import re
from pathlib import Path

from docs.generate.markdown import code, head, table
from hascheduler.cli.environment import READ_ELSEWHERE
from hascheduler.settings import PREFIX, SECRETS, Settings, described, variable, variables

_ROOT = Path(__file__).parents[2]
_INTRO = """\
Each setting of `hascheduler serve` and `hascheduler processor` is an environment variable and an option of the same
name (`HASCHEDULER_HTTP_PORT` is `--http-port`); the option wins. Settings are read and checked once, at start: a
process with a wrong or contradictory one exits with one line that names it.

A variable `HASCHEDULER_…` that nothing reads is an error too, and the message names the nearest one. Variables that
Kubernetes makes of a Service (`HASCHEDULER_SERVICE_HOST`, `HASCHEDULER_PORT=tcp://…`) are ignored, but a Service named
`hascheduler-http` would set `HASCHEDULER_HTTP_PORT`, so the manifests have `enableServiceLinks: false`.

Durations are texts such as `10s`, `1m30s` or `200ms`, or numbers of seconds. Secrets can be read from files:
{secrets}. Give all replicas the same settings, except names, addresses and files, because a new leader decides by its
own.
"""
_SECTIONS = (
    ("Stores and broker", "mongodb_uri"),
    ("HTTP API and access", "http_host"),
    ("TLS", "http_tls_cert_file"),
    ("Health and liveness", "liveness_host"),
    ("Leadership, clocks and timing", "replica_id"),
    ("Policy and admission", "policy"),
    ("Processors", "slots"),
    ("Traces and logs", "tracing"),
)
"""Titles, and the first field of each."""


def page() -> str:
    secrets = ", ".join(code(f"{PREFIX}{name}_FILE") for name in SECRETS)
    parts = [head("Settings", "hascheduler/settings.py", _INTRO.format(secrets=secrets))]
    fields = list(Settings.model_fields)
    starts = {first: title for title, first in _SECTIONS}
    rows: list[tuple[str, str, str]] = []
    for name in fields:
        if name in starts:
            parts += [*_section(rows), f"## {starts.pop(name)}\n"]
            rows = []
        rows.append(_row(name))
    parts += _section(rows)
    assert not starts, f"no such settings: {starts}"
    parts += ["## Read elsewhere\n", table(("variable", "read by"), _elsewhere())]
    return "\n".join(parts)


def _section(rows: list[tuple[str, str, str]]) -> list[str]:
    return [table(("variable", "default", "what it sets"), rows)] if rows else []


def _row(name: str) -> tuple[str, str, str]:
    text, default = described(name)
    return code(variable(name)), default, text


def _elsewhere() -> list[tuple[str, str]]:
    """Return the variables that `Settings` does not have; fail if the code names one that nothing explains."""
    named = {
        name
        for path in (_ROOT / "hascheduler").rglob("*.py")
        for name in re.findall(rf"{PREFIX}([A-Z]+(?:_[A-Z]+)*)", path.read_text(encoding="utf-8"))
    }
    known = {name.removeprefix(PREFIX) for name in variables()}
    unexplained = named - known - set(READ_ELSEWHERE)
    assert not unexplained, f"add to READ_ELSEWHERE: {sorted(unexplained)}"
    return [(code(PREFIX + name), text) for name, text in READ_ELSEWHERE.items()]
