"""``hascheduler schedule list``."""

from rich.console import RenderableType

from hascheduler.cli.client import Client
from hascheduler.cli.live import not_both, show
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, LabelFilter, Url, Watch, label_query
from hascheduler.cli.schedule.shown import schedules_table
from hascheduler.cli.tables import print_json
from hascheduler.clock import SystemClock


@example("hascheduler schedule list --label team=a --watch")
def list_schedules(
    labels: LabelFilter = None, url: Url = DEFAULT_URL, as_json: AsJson = False, watch: Watch = False
) -> None:
    """List schedules, and how they stand."""
    not_both(as_json=as_json, watch=watch)
    with Client(url) as client:

        def picture() -> RenderableType:
            schedules = list(client.items("/v1/schedules", label_query(labels)))
            return schedules_table(schedules, SystemClock().wall_ms())

        if as_json:
            print_json({"items": list(client.items("/v1/schedules", label_query(labels)))})
        else:
            show(picture, watch=watch)
