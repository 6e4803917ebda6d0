"""``hascheduler schedule get``."""

import typer

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.diffs import as_yaml
from hascheduler.cli.names import ScheduleName
from hascheduler.cli.normal_forms import normal_schedule
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, AsYaml, Url
from hascheduler.cli.schedule.shown import show_schedule
from hascheduler.cli.tables import console, print_json
from hascheduler.clock import SystemClock


@example("hascheduler schedule get nightly", "hascheduler schedule get nightly --yaml > nightly.yaml")
def get(name: ScheduleName, url: Url = DEFAULT_URL, as_json: AsJson = False, as_manifest: AsYaml = False) -> None:
    """Show one schedule."""
    with Client(url) as client:
        answer = client.get(path_of("schedule", name))
    if as_json:
        print_json(answer)
    elif as_manifest:
        typer.echo(as_yaml({"kind": "Schedule", **normal_schedule(answer)}), nl=False)
    else:
        console().print(show_schedule(answer, SystemClock().wall_ms()))
