"""``hascheduler schedule timeline``: when all schedules fire, as a picture."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from hascheduler.cli.client import Client
from hascheduler.cli.live import not_both, show
from hascheduler.cli.on_demand import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, LabelFilter, Url, Watch, label_query
from hascheduler.cli.schedule.coming import Zone, coming_rows, zone_of
from hascheduler.cli.tables import console, print_json
from hascheduler.cli.timelines import LEGEND, count_fires, draw_timeline
from hascheduler.clock import SystemClock

_HOUR_MS = 3_600_000


@example("hascheduler schedule timeline --hours 48 --label team=a")
def timeline(
    hours: Annotated[int, typer.Option("--hours", min=1, max=168, help="How far to look")] = 24,
    *,
    labels: LabelFilter = None,
    timezone: Zone = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Draw when schedules fire in the next hours.

    Nominal times: jitter is left out.
    """
    not_both(as_json=as_json, watch=watch)
    zone = zone_of(timezone)
    with Client(url) as client:

        def picture() -> RenderableType:
            now_ms = SystemClock().wall_ms()
            rows = coming_rows(client.items("/v1/schedules", label_query(labels)), now_ms)
            if not rows:
                return Text("There are no schedules.", style="dim")
            lines = draw_timeline(rows, now_ms, hours, zone, console().width)
            return Group(*lines, "", Text(f"{LEGEND}   times of {zone.key}", style="dim"))

        if not as_json:
            show(picture, watch=watch)
            return
        now_ms = SystemClock().wall_ms()
        rows = coming_rows(client.items("/v1/schedules", label_query(labels)), now_ms)
        counts = [(row, count_fires(row, now_ms, now_ms + hours * _HOUR_MS)) for row in rows]
        fires = {row.name: count if row.fires_left is None else min(count, row.fires_left) for row, count in counts}
        print_json({"hours": hours, "fires": fires})
