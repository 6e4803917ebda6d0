"""The command ``hascheduler bootstrap mongodb``: the replica set with all its members, and its users."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from hascheduler.cli.input.values import read_source
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import option
from hascheduler.cli.output.logs import configure_logging
from hascheduler.cli.setting_options import exit_on_sigterm
from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import parse_duration
from hascheduler.settings import INSTEAD_OF_PUBLISHED, PUBLISHED, is_published, read_settings

_KEY = re.compile(r"[A-Za-z0-9+/=]{6,1024}")
_PUBLISHED_KEY = "DevelopmentOnlyKeyThatEverybodyKnows"
_MEMBER = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?)(?::([1-9][0-9]{0,4}))?")


@example(
    "hascheduler bootstrap mongodb --members mongodb-0.mongodb:27017,mongodb-1.mongodb:27017 --keyfile keyfile \\",
    "    --users-from passwords/",
)
def mongodb(
    *,
    members: Annotated[str, option("--members HOST:PORT,...", "All members, by host names that clients use too")],
    keyfile: Annotated[Path, option("--keyfile FILE", "Key file of the members")],
    users_from: Annotated[
        Path, option("--users-from DIR", "Directory with the files scheduler-, processor- and admin-password")
    ],
    replica_set: Annotated[str, option("--set NAME", "Name of the replica set")] = "rs0",
    timeout: Annotated[str, option("--timeout DURATION", "How long to try")] = "5m",
) -> None:
    """Initiate MongoDB's replica set, add missing members, and create or update its users.

    It can be run repeatedly and from several places at once: what is right stays unchanged, and nothing is ever
    removed. It reads HASCHEDULER_DATABASE, HASCHEDULER_SHARDS, HASCHEDULER_MONGODB_TLS_CA_FILE and _CERT_FILE,
    and HASCHEDULER_LOG_FORMAT. The exit status is 1 if time runs out, and 2 if waiting would not help.
    """
    exit_on_sigterm()
    from hascheduler.bootstrap import DatabasePlan, bootstrap_mongodb
    from hascheduler.embedded.children import run_in_foreground

    settings = read_settings()
    key = read_key(keyfile)
    passwords = {user: read_password(users_from / f"{user}-password") for user in ("scheduler", "processor", "admin")}
    if settings.development_secrets == "refused":
        if key == _PUBLISHED_KEY:
            raise InvalidInput(("--keyfile",), PUBLISHED, INSTEAD_OF_PUBLISHED)
        if any(map(is_published, passwords.values())):
            raise InvalidInput(("--users-from",), f"one of the passwords {PUBLISHED}", INSTEAD_OF_PUBLISHED)
    plan = DatabasePlan(
        members=parse_members(members),
        replica_set=replica_set,
        databases=settings.shard_databases,
        key=key,
        passwords=passwords,
        timeout_ms=parse_duration(timeout, ("--timeout",)),
        tls_ca_file=settings.mongodb_tls_ca_file,
        tls_cert_file=settings.mongodb_tls_cert_file,
    )
    configure_logging(settings)
    run_in_foreground(bootstrap_mongodb(plan))


def parse_members(text: str) -> Sequence[str]:
    """Return ``host:port`` of each, sorted; the default port is 27017."""
    found = [_MEMBER.fullmatch(part.strip()) for part in text.split(",")]
    members = sorted({f"{one[1]}:{one[2] or 27017}" for one in found if one is not None})
    if len(members) != len(found):
        raise InvalidInput(("--members",), quoted(text), "host:port of each member, with commas")
    return members


def read_key(path: Path) -> str:
    """Return the key without white space; if there is a list, as during a change of keys, the first one."""
    text = read_source(str(path), "a key", ("--keyfile",))
    first = re.match(r"- *(\S+)", text)
    key = first[1] if first else "".join(text.split())
    if not _KEY.fullmatch(key):
        raise InvalidInput(("--keyfile",), f"{path} contains no key", "6 to 1,024 characters of base64")
    return key


def read_password(path: Path) -> str:
    """Return the password without the line break at its end."""
    password = read_source(str(path), "a line of text", ("--users-from",)).rstrip("\r\n")
    if not password or not password.isprintable():
        raise InvalidInput(("--users-from",), f"{path} contains no password", "a line of printable characters")
    return password
