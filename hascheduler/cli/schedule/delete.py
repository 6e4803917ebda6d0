"""``hascheduler schedule delete``."""

from hascheduler.cli.deleting import delete_stored
from hascheduler.cli.names import ScheduleName
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url, Yes
from hascheduler.cli.trigger_words import words


@example("hascheduler schedule delete nightly --yes")
def delete(name: ScheduleName, yes: Yes = False, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Delete a schedule. Jobs that it made go on."""
    delete_stored(
        "schedule", name, yes=yes, url=url, as_json=as_json, described=lambda stored: f" ({words(stored['trigger'])})"
    )
