"""Instants are shown in the zone of their reader; tables fit where they are shown, and no id is cut."""

import re
from io import StringIO

import pytest
from rich.text import Text

from hascheduler.cli.output.console import console
from hascheduler.cli.output.instants import (
    instant_text,
    with_instants_shown,
)  # fmt: skip
from hascheduler.cli.output.tables import FittedTable, choosing

# Instants


@pytest.mark.parametrize(
    ("zone", "instant", "shown"),
    [
        ("UTC", "2030-01-31T09:30:00.000Z", "2030-01-31T09:30:00Z"),
        ("", "2030-01-31T10:30:00+01:00", "2030-01-31T09:30:00Z"),
        ("Etc/UTC", "2030-01-31T09:30:00.250Z", "2030-01-31T09:30:00.250Z"),
        ("Europe/Paris", "2030-01-31T09:30:00.000Z", "2030-01-31 10:30:00 CET"),
        (":Europe/Paris", "2030-07-31T09:30:00.000Z", "2030-07-31 11:30:00 CEST"),
        ("Asia/Dubai", "2030-01-31T09:30:00.000Z", "2030-01-31 13:30:00 +04"),
        ("Nowhere/At/All", "2030-01-31T09:30:00.000Z", "2030-01-31T09:30:00Z"),
        ("../etc/passwd", "2030-01-31T09:30:00.000Z", "2030-01-31T09:30:00Z"),
        ("Europe/Paris", "in a while", "in a while"),
    ],
)
def test_an_instant_is_shown_in_the_zone_of_its_reader_and_names_it(
    monkeypatch: pytest.MonkeyPatch, zone: str, instant: str, shown: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    assert instant_text(instant) == shown
    assert with_instants_shown(f"not before {instant}.") == f"not before {shown if 'Z' in instant else instant}."


# Tables

ID = "fire:a-rather-long-name-of-a-schedule:1893456000000"
ERROR = "ConnectionRefusedError: nobody listens at 127.0.0.1:5432 any more, says the database's client"
CELLS = {"job": ID, "state": "succeeded", "tenant": "acme", "host": "host-a.8f3e", "error": ERROR}


def shown(*, width: int) -> str:
    table = FittedTable("", *CELLS, spare=("host", "tenant", "state"), wraps=("error",))
    table.add_row(*map(Text, CELLS.values()))
    out = console()
    out.file, out.width = StringIO(), width
    with choosing(None, wide=False):
        out.print(table)
    return out.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
def test_no_id_is_cut_and_no_word_is_broken(width: int) -> None:
    text = shown(width=width)
    assert ID in text
    words = re.findall(r"[A-Za-z'-]+", text.partition("not shown")[0])
    assert set(words) <= set(re.findall(r"[A-Za-z'-]+", " ".join([*CELLS, *CELLS.values()])))
    assert set(ERROR.split()) <= set(text.split())


def test_columns_are_left_out_the_least_important_first_and_named() -> None:
    assert "not shown: host; --wide shows all" in shown(width=110)
    assert "not shown: state, tenant, host" in " ".join(shown(width=80).split())
    assert "not shown" not in shown(width=200)
