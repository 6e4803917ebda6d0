"""How results look: tables for people, one JSON document for programs. Colours only where a terminal shows them."""

import json
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def console() -> Console:
    """Writes to standard output and highlights nothing by itself."""
    return Console(highlight=False)


def print_json(answer: Any) -> None:
    typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))


def new_table(title: str, *columns: str) -> Table:
    """Its cells are folded where they are too wide: names are there to be copied, so none is cut off."""
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def yes_or_no(value: bool) -> Text:
    return Text("yes", style="green") if value else Text("no", style="red")


def or_dash(value: object) -> str:
    return "–" if value is None else str(value)
