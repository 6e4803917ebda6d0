"""Tables fit where they are shown: columns are left out, but no id is cut and no word broken."""

import re
from io import StringIO

import pytest
from rich.text import Text

from hascheduler.cli.output.console import console
from hascheduler.cli.output.tables import FittedTable, choosing
from hascheduler.errors import InvalidInput

ID = "fire:a-rather-long-name-of-a-schedule:1893456000000"
ERROR = "ConnectionRefusedError: nobody listens at 127.0.0.1:5432 any more, says the database's client"
CELLS = {"job": ID, "state": "succeeded", "tenant": "acme", "host": "host-a.8f3e", "error": ERROR}


def shown(*, width: int, wide: bool = False, columns: str | None = None) -> str:
    table = FittedTable("", *CELLS, spare=("host", "tenant", "state"), wraps=("error",))
    table.add_row(*map(Text, CELLS.values()))
    out = console()
    out.file, out.width = StringIO(), width
    with choosing(columns, wide=wide):
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


def test_wide_shows_all_columns_on_one_line() -> None:
    [line] = [line for line in shown(width=40, wide=True).splitlines() if ID in line]
    assert all(cell in line for cell in CELLS.values())


def test_columns_shows_those_that_it_names_in_that_order() -> None:
    rows = [line.split() for line in shown(width=40, columns="State, job").splitlines() if line.strip(" ─")]
    assert rows == [["state", "job"], ["succeeded", ID]]


def test_a_column_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidInput, match="'colour' is no column; expected some of job, state, tenant, host, error"):
        shown(width=80, columns="job,colour")
