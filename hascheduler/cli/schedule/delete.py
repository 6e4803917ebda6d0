"""``hascheduler schedule delete``."""

from hascheduler.cli.client import Client, path_of
from hascheduler.cli.names import ScheduleName
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url, Yes
from hascheduler.cli.questions import agreed
from hascheduler.cli.tables import console, print_json
from hascheduler.cli.trigger_words import words


@example("hascheduler schedule delete nightly --yes")
def delete(name: ScheduleName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a schedule. Jobs that it made go on."""
    with Client(url) as client:
        path = path_of("schedule", name)
        stored = client.get(path)
        deleted = agreed(f"Delete the schedule {name} ({words(stored['trigger'])})?", yes=yes)
        if deleted:
            client.ask("DELETE", path, rev=stored["rev"])
    if as_json:
        print_json({"name": name, "deleted": deleted})
    else:
        console().print(f"deleted {name}" if deleted else "left as it is", markup=False)
