"""The command ``hascheduler doctor``: what the servers have of what a deployment needs."""

import asyncio
from collections import Counter
from dataclasses import asdict
from functools import partial
from typing import Annotated

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.check.servers import Requirement, RequirementState
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import argument
from hascheduler.cli.output.answers import Shown, prints
from hascheduler.cli.setting_options import with_settings
from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.settings import Settings

_SETTINGS = (
    "mongodb_uri", "database", "mongodb_tls_ca_file", "mongodb_tls_cert_file", "shards", "shard_mongodb_uris",
    "transport", "amqp_url", "amqp_tls_ca_file", "amqp_tls_cert_file", "amqp_tls_key_file", "log_format", "log_level",
)  # fmt: skip
_SCHEMES = ("mongodb://", "mongodb+srv://", "amqp://", "amqps://")
_SIGNS = {
    RequirementState.MET: ("✓", "green"),
    RequirementState.WARNING: ("!", "yellow"),
    RequirementState.MISSING: ("✗", "bold red"),
    RequirementState.UNKNOWN: ("?", "cyan"),
}

Uris = Annotated[list[str] | None, argument("URI", "mongodb:// or amqp:// addresses; default: those of the settings")]


@example("hascheduler doctor", "hascheduler doctor mongodb://db1:27017/?replicaSet=rs0 amqp://guest:guest@broker/")
@prints()
@partial(with_settings, names=_SETTINGS)
def doctor(uris: Uris = None, *, settings: Settings) -> Shown:
    """Examine MongoDB and RabbitMQ: what hascheduler needs, what is missing, what to do.

    It changes no data; on RabbitMQ it makes the exchange of dispatches, and a queue that it deletes. Status 0: nothing
    is missing, though there may be warnings; 1: something is missing; 2: wrong usage.
    """
    for place, uri in enumerate(uris or ()):
        if not uri.startswith(_SCHEMES):
            # Not the URI itself: it may hold a password.
            problem = f"{quoted(uri.partition('://')[0])} is no scheme of a server"
            raise InvalidInput(("URI", place), problem, " or ".join(_SCHEMES))
    found = asyncio.run(_examined(settings, uris or ()))
    counts = Counter(one.state for one in found)
    document = {"requirements": [asdict(one) for one in found], "counts": {state: counts[state] for state in _SIGNS}}
    return Shown(document, _picture(found, counts), int(bool(counts[RequirementState.MISSING])))


async def _examined(settings: Settings, uris: list[str] | tuple[str, ...]) -> list[Requirement]:
    from hascheduler import assembly  # imports every driver, so only if the command runs

    found = []
    with Console(stderr=True).status("examining …") as status:
        async for requirement in assembly.examine(settings, uris):
            found.append(requirement)
            status.update(f"examining {requirement.server} …")
    return found


def _picture(found: list[Requirement], counts: Counter[RequirementState]) -> RenderableType:
    parts: list[RenderableType] = []
    for server in dict.fromkeys(one.server for one in found):
        table = Table.grid(padding=(0, 2, 0, 0))
        for one in found:
            if one.server == server:
                sign, style = _SIGNS[one.state]
                text = Text(one.found)
                if one.remedy:
                    text.append(f"\n→ {one.remedy}", style="dim")
                table.add_row(Text(f"  {sign}", style=style), Text(one.what, style="bold"), text)
        parts += [Text(server, style="bold"), table, Text()]
    parts.append(Text("   ".join(f"{state} {count}" for state in _SIGNS if (count := counts[state]))))
    return Group(*parts)
