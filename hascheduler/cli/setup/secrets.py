"""``hascheduler secrets``: the files of the Secrets that a deployment on Kubernetes takes, certificates among them."""

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from hascheduler.cli.lazy_groups import example
from hascheduler.errors import InvalidInput

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]{0,250}[A-Za-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_BROKER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?(?::[0-9]{1,5})?")
_EXCHANGE = re.compile(r"[A-Za-z0-9._:-]{0,127}")
_DATABASE = re.compile(r"[A-Za-z0-9_-]{1,38}")
_REPLICA_SET = re.compile(r"[A-Za-z0-9_-]{1,64}")


@example(
    "hascheduler secrets --out secrets",
    "hascheduler secrets --out secrets --namespace jobs | bash    (and kubectl makes them)",
    "hascheduler secrets --out secrets --members mongo.example.com:27017 --rabbitmq-host mq.example.com",
    "hascheduler secrets --out renewed --renew secrets | bash    (new certificates; nothing restarts)",
)
def secrets(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where they go; it must not exist, or be empty.")],
    *,
    members: Annotated[
        list[str] | None,
        typer.Option(
            "--members",
            metavar="HOST:PORT,...",
            help="The replica set's members, as pods reach them; default: mongodb-0 to -2 of the StatefulSet.",
        ),
    ] = None,
    replica_set: Annotated[str, typer.Option("--set", metavar="NAME", help="The name of the set.")] = "rs0",
    database: Annotated[
        str, typer.Option("--database", metavar="NAME", help="The database, which the users belong to.")
    ] = "hascheduler",
    rabbitmq_host: Annotated[
        str, typer.Option("--rabbitmq-host", metavar="HOST[:PORT]", help="The broker, as pods reach it.")
    ] = "rabbitmq",
    events_exchange: Annotated[
        str, typer.Option("--events-exchange", metavar="NAME", help="Where the scheduler may publish events.")
    ] = "hascheduler.events",
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="Where the Secrets and the StatefulSets are.")
    ] = "hascheduler",
    development: Annotated[
        bool,
        typer.Option(
            "--development", help="Well-known values instead of fresh ones, and no TLS. Never for production."
        ),
    ] = False,
    tls: Annotated[
        bool,
        typer.Option("--tls/--no-tls", help="Servers are reached over TLS, or, as in k8s/overlays/trial, without."),
    ] = True,
    certificates: Annotated[
        bool | None,
        typer.Option(
            "--certificates/--no-certificates",
            help="An authority and certificates too; no where others make them. With --no-tls: for the API alone,"
            " and only if this says so (k8s/components/https).",
            show_default=False,
        ),
    ] = None,
    api_host: Annotated[
        list[str] | None,
        typer.Option("--api-host", metavar="NAME", help="Another name that the API is reached by; again for more."),
    ] = None,
    renew: Annotated[
        Path | None,
        typer.Option(
            "--renew",
            metavar="DIR",
            help="Certificates alone, signed by the authority that an earlier --out has in DIR; give the same names.",
        ),
    ] = None,
) -> None:
    """Write passwords, keys, URIs and certificates, all fresh, and print the commands that make Secrets of them.

    One folder for each Secret, readable for you alone. Keep them as you keep keys: nobody can show them again. The
    folder `authority` becomes no Secret: it signs the next certificates, before these end after 397 days (--renew).
    """
    from hascheduler.bootstrap.certificates import new_authority
    from hascheduler.bootstrap.inputs import parse_members
    from hascheduler.bootstrap.secret_files import (
        AUTHORITY,
        Places,
        authority_files,
        certificate_files,
        read_authority,
        secret_files,
        write_secret_files,
    )
    from hascheduler.bootstrap.secret_values import development_values, fresh_values

    _demand(_NAMESPACE, "--namespace", namespace, "the name of a namespace")
    _demand(_REPLICA_SET, "--set", replica_set, "letters, digits, - and _")
    _demand(_DATABASE, "--database", database, "letters, digits, - and _")
    _demand(_BROKER, "--rabbitmq-host", rabbitmq_host, "host or host:port")
    for host in api_host or ():
        _demand(_HOST, "--api-host", host, "a name or an address")
    _demand(_EXCHANGE, "--events-exchange", events_exchange, "letters, digits, and . _ : -")
    places = Places(
        members=parse_members(members or [f"mongodb-{number}.mongodb" for number in range(3)]),
        replica_set=replica_set,
        database=database,
        broker=rabbitmq_host,
        events_exchange=events_exchange,
        namespace=namespace,
        api=api_host or (),
        tls=tls and not development,
    )
    if renew is not None:
        files = certificate_files(read_authority(renew), places)
    else:
        files = secret_files(development_values() if development else fresh_values(), places)
        if not development and (places.tls if certificates is None else certificates):
            authority = new_authority(f"hascheduler {namespace}")
            files = {**files, **certificate_files(authority, places), **authority_files(authority)}
    write_secret_files(out, files)
    replacing = " --dry-run=client --output=yaml | kubectl replace --filename=-" if renew is not None else ""
    for secret in files:
        if secret != AUTHORITY:
            folder = shlex.quote(str(out / secret))
            typer.echo(
                f"kubectl --namespace {namespace} create secret generic {secret} --from-file={folder}{replacing}"
            )


def _demand(pattern: re.Pattern[str], option: str, value: str, expected: str) -> None:
    if not pattern.fullmatch(value):
        raise InvalidInput((option,), repr(value[:64]), expected)
