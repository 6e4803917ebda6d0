"""``hascheduler demo``: the whole system, its leader killed again and again, and a report."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hascheduler.cli import credentials
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.run.dev import SHARDS_SHOWN_MAX, TransportOption, require_folder, require_own_servers

_NAMESPACE = "hascheduler"
_KILLS = 3


@example("hascheduler demo", "hascheduler demo --shards 4", "hascheduler demo --kubernetes --kills 6")
def demo(
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running after the report, until Ctrl-C.")
    ] = False,
    transport: Annotated[
        TransportOption | None, typer.Option(help="How jobs reach processors; RabbitMQ where it is installed.")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(min=1, max=SHARDS_SHOWN_MAX, help="How many shards [1]", show_default=False)
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where the processes' logs go.")] = Path(".run/demo"),
    pause: Annotated[str, typer.Option(help="How long it is left alone between two kills.")] = "8s",
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Not on this machine: in a cluster that hascheduler runs in.")
    ] = False,
    context: Annotated[
        str | None, typer.Option(help="The cluster, as kubectl knows it; default: its current context.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(help=f"Where hascheduler is in that cluster [{_NAMESPACE}]", show_default=False)
    ] = None,
    kills: Annotated[
        int | None, typer.Option(min=1, max=100, help="How often the leader's pod is ended [3]", show_default=False)
    ] = None,
) -> None:
    """Run the system, kill the leader again and again and a processor once, and report.

    On this machine that is three replicas and two processors, started for it, and takes about a minute. With --shards 4
    the schedules are spread over four shards, each with a leader of its own, and the replica is killed that leads most
    of them: the report shows that the others did not notice. With
    --kubernetes it is what is there: the leader's pod, found by its lease, is killed from inside, deleted, and deleted
    by force, in turns. Its schedules have names of their own and are deleted at the end.

    Exits with 1 if a nominal time was missed or an effect was doubled, and with 3 if that can't be said yet: jobs are
    late, behind a backlog for example, and still to run.
    """
    from rich.console import Console

    from hascheduler.demo.run import OpenEnvironment, run_demo
    from hascheduler.embedded.children import run_in_foreground
    from hascheduler.errors import InvalidInput
    from hascheduler.model.values.durations import parse_duration

    pause_ms = parse_duration(pause)
    of_a_cluster = {"--context": context, "--namespace": namespace, "--kills": kills}
    of_this_machine = {"--keep": keep or None, "--transport": transport, "--shards": shards}
    for option, value in (of_this_machine if kubernetes else of_a_cluster).items():
        if value is not None and kubernetes:
            raise InvalidInput((option,), "is for a system on this machine", "no --kubernetes beside it")
        if value is not None:
            raise InvalidInput((option,), "is for a cluster", "--kubernetes beside it")
    opening: OpenEnvironment
    if kubernetes:
        from hascheduler.demo.kubernetes import Kubectl, open_kubernetes_environment

        kubectl, token = Kubectl(context, namespace or _NAMESPACE), credentials.token()
        opening = partial(
            open_kubernetes_environment, kubectl=kubectl, folder=folder, kills=kills or _KILLS, token=token
        )
    else:
        from hascheduler.demo.local import open_local_environment

        opening = partial(open_local_environment, folder, None if transport is None else transport.value, shards or 1)
    require_folder(folder)
    console = Console(highlight=False)

    async def checked_demo() -> int:
        if not kubernetes:
            await require_own_servers(None if transport is None else transport.value)
        return await run_demo(console, opening, keep=keep, pause_s=pause_ms / 1_000)

    raise typer.Exit(run_in_foreground(checked_demo()))
