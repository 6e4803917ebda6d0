"""Deleting what has a name: looks at it, asks, and deletes what was looked at."""

from collections.abc import Callable, Mapping
from typing import Any

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.questions import agreed
from hascheduler.cli.tables import console, print_json


def delete_stored(
    kind: str,
    name: str,
    *,
    yes: bool,
    url: str,
    as_json: bool,
    described: Callable[[Mapping[str, Any]], str] = lambda _: "",
) -> None:
    """``described`` says in the question what would go."""
    with Client(url) as client:
        path = path_of(kind, name)
        stored = client.get(path)
        deleted = agreed(f"Delete the {kind} {name}{described(stored)}?", yes=yes)
        if deleted:
            client.ask("DELETE", path, rev=stored["rev"])
    if as_json:
        print_json({"name": name, "deleted": deleted})
    else:
        console().print(f"deleted {name}" if deleted else "left as it is", markup=False)
