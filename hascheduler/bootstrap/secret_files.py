"""The files of the four Secrets: which there are, what is in each, and how they are put on disk."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hascheduler.bootstrap.broker_definitions import PROCESSOR_USER, SCHEDULER_USER, broker_definitions
from hascheduler.bootstrap.secret_values import SecretValues
from hascheduler.errors import InvalidInput

SecretFiles = Mapping[str, Mapping[str, str]]
"""Text by the name of the file by the name of the Secret."""

KEYFILE = "keyfile"
ADMIN_PASSWORD = "admin-password"  # noqa: S105  # the name of a file
SCHEDULER_PASSWORD = "scheduler-password"  # noqa: S105  # the name of a file
PROCESSOR_PASSWORD = "processor-password"  # noqa: S105  # the name of a file

_AMQP_PORT = 5672


@dataclass(frozen=True, slots=True)
class Places:
    """Where the servers are, as the pods see them. ``broker`` may name a port of its own."""

    members: Sequence[str]
    replica_set: str
    database: str
    broker: str
    events_exchange: str


def secret_files(values: SecretValues, places: Places) -> SecretFiles:
    """No text ends with a newline, except for JSON: some of those who read Secrets take everything as it is."""
    definitions = broker_definitions(values, places.events_exchange)
    return {
        "hascheduler-mongodb": {
            KEYFILE: values.keyfile,
            SCHEDULER_PASSWORD: values.mongodb_scheduler,
            PROCESSOR_PASSWORD: values.mongodb_processor,
            ADMIN_PASSWORD: values.mongodb_admin,
        },
        "hascheduler-rabbitmq": {"definitions.json": json.dumps(definitions, indent=2) + "\n"},
        "hascheduler-scheduler": {
            "mongodb-uri": _mongodb_uri(SCHEDULER_USER, values.mongodb_scheduler, places),
            "amqp-url": _amqp_url(SCHEDULER_USER, values.amqp_scheduler, places),
            "admin-token": values.admin_token,
        },
        "hascheduler-processor": {
            "mongodb-uri": _mongodb_uri(PROCESSOR_USER, values.mongodb_processor, places),
            "amqp-url": _amqp_url(PROCESSOR_USER, values.amqp_processor, places),
        },
    }


def write_secret_files(folder: Path, files: SecretFiles) -> None:
    """``folder/<Secret>/<file>``, for the owner alone. Where there is anything in ``folder`` nothing is written:
    secrets that are in use would be lost with it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidInput(("--out",), f"{folder} is not empty", "a new or an empty folder")
        for secret, texts in files.items():
            (folder / secret).mkdir(mode=0o700)
            for name, text in texts.items():
                _write(folder / secret / name, text)
    except OSError as error:
        raise InvalidInput(("--out",), f"{error.filename}: {error.strerror}", "a folder to write to") from None


def _write(path: Path, text: str) -> None:
    # Readable for the owner alone from the start on; never through a link that somebody has put there.
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)


def _mongodb_uri(user: str, password: str, places: Places) -> str:
    members = ",".join(places.members)
    return f"mongodb://{user}:{password}@{members}/?replicaSet={places.replica_set}&authSource={places.database}"


def _amqp_url(user: str, password: str, places: Places) -> str:
    broker = places.broker if ":" in places.broker else f"{places.broker}:{_AMQP_PORT}"
    return f"amqp://{user}:{password}@{broker}/"
