"""``hascheduler serve``: one replica."""

import uvloop

from hascheduler.cli.console import configure_logging
from hascheduler.cli.leaving import leave_on_sigterm
from hascheduler.cli.setting_options import with_settings
from hascheduler.garbage import collect_seldom
from hascheduler.settings import Settings


@with_settings
def serve(*, settings: Settings) -> None:
    """Run one replica: the scheduler's loops and the HTTP API. SIGTERM hands over and ends it in good order."""
    leave_on_sigterm()
    from hascheduler import assembly  # every driver there is: only when it runs

    configure_logging(settings)
    collect_seldom()
    uvloop.run(assembly.serve(settings))
