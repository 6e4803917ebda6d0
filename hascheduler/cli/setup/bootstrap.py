"""``hascheduler bootstrap mongodb``: the replica set with all its members, and its users."""

import re
from pathlib import Path
from typing import Annotated

import typer

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.output.logs import configure_logging
from hascheduler.cli.run.early_sigterm import exit_on_sigterm
from hascheduler.errors import InvalidInput
from hascheduler.model.values.durations import parse_duration
from hascheduler.settings import read_settings

_REPLICA_SET = re.compile(r"[A-Za-z0-9_-]{1,64}")


@example(
    "hascheduler bootstrap mongodb --members mongodb-0.mongodb:27017,mongodb-1.mongodb:27017 --keyfile keyfile \\",
    "    --users-from passwords/",
)
def mongodb(
    *,
    members: Annotated[
        list[str],
        typer.Option(
            "--members", metavar="HOST:PORT,...", help="All members, by the names that clients reach them by too."
        ),
    ],
    keyfile: Annotated[
        Path, typer.Option("--keyfile", metavar="FILE", help="The key that the members were started with.")
    ],
    users_from: Annotated[
        Path,
        typer.Option(
            "--users-from",
            metavar="DIR",
            help="Where scheduler-password, processor-password and admin-password are.",
        ),
    ],
    replica_set: Annotated[str, typer.Option("--set", metavar="NAME", help="The name of the set.")] = "rs0",
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="How long it may take, waiting for members included.")
    ] = "5m",
) -> None:
    """Initiate the replica set where it is not, add the members that it lacks, and make or update its users.

    Do it as often as you like, and from several places at once: what is as it should be stays as it is. Nothing is
    ever taken away. HASCHEDULER_DATABASE, HASCHEDULER_SHARDS, HASCHEDULER_MONGODB_TLS_CA_FILE and _CERT_FILE, and
    HASCHEDULER_LOG_FORMAT hold for it too. Status 1: not in time; status 2: something that waiting does not mend.
    """
    exit_on_sigterm()
    from hascheduler.bootstrap.inputs import parse_members, read_key, read_passwords, refuse_published
    from hascheduler.bootstrap.member import MemberAccess
    from hascheduler.bootstrap.mongodb import DatabasePlan, bootstrap_mongodb
    from hascheduler.embedded.children import run_in_foreground

    if not _REPLICA_SET.fullmatch(replica_set):
        raise InvalidInput(("--set",), repr(replica_set[:64]), "letters, digits, - and _")
    settings = read_settings()
    key, passwords = read_key(keyfile), read_passwords(users_from)
    if settings.development_secrets == "refused":
        refuse_published(key, passwords)
    plan = DatabasePlan(
        members=parse_members(members),
        replica_set=replica_set,
        databases=settings.shard_databases,
        access=MemberAccess(key, settings.mongodb_tls_ca_file, settings.mongodb_tls_cert_file),
        passwords=passwords,
        timeout_ms=parse_duration(timeout, ("--timeout",)),
    )
    configure_logging(settings)
    run_in_foreground(bootstrap_mongodb(plan))
