"""The files of the Secrets: which there are, what is in each, and how they are written to disk."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hascheduler.bootstrap.broker_definitions import PROCESSOR_USER, SCHEDULER_USER, broker_definitions
from hascheduler.bootstrap.certificates import Issued, issue
from hascheduler.bootstrap.secret_values import SecretValues
from hascheduler.errors import InvalidInput

SecretFiles = Mapping[str, Mapping[str, str]]
"""Text by the name of the file by the name of the Secret."""

KEYFILE = "keyfile"
ADMIN_PASSWORD = "admin-password"  # noqa: S105  # the name of a file
SCHEDULER_PASSWORD = "scheduler-password"  # noqa: S105  # the name of a file
PROCESSOR_PASSWORD = "processor-password"  # noqa: S105  # the name of a file

CA_CERT, TLS_CERT, TLS_KEY = "ca.crt", "tls.crt", "tls.key"
"""As Kubernetes and cert-manager call them."""
TLS_BOTH = "tls-combined.pem"
"""The key and then the certificate, which mongod wants in one file; cert-manager's name for it too."""
AUTHORITY = "authority"
"""A folder beside those of the Secrets, and none itself: ``ca.key`` signs the certificates, and stays at home."""
AUTHORITY_KEY = "ca.key"

_AMQP_PORT = 5672
_AMQPS_PORT = 5671
_LOCAL = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Places:
    """Where the servers are, as the pods see them. ``broker`` may name a port of its own; with ``tls`` all of them are
    reached over TLS, the API as one of ``api`` too."""

    members: Sequence[str]
    replica_set: str
    database: str
    broker: str
    events_exchange: str
    namespace: str = "hascheduler"
    api: Sequence[str] = ()
    tls: bool = False


def secret_files(values: SecretValues, places: Places) -> SecretFiles:
    """No text ends with a newline, except for JSON: some readers of Secrets take every byte."""
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


def certificate_files(authority: Issued, places: Places) -> SecretFiles:
    """The certificates of the three servers, signed by ``authority``, or, without ``tls``, of the API; a client
    needs ``ca.crt`` alone."""
    broker = places.broker.partition(":")[0]
    ca = {CA_CERT: authority.cert}
    api = issue(authority, "hascheduler", _once(*_forms("hascheduler", places), *places.api, *_LOCAL))
    of_api = {"hascheduler-tls": {**ca, TLS_CERT: api.cert, TLS_KEY: api.key}}
    if not places.tls:
        return of_api
    hosts = [member.rpartition(":")[0] for member in places.members]
    members = issue(
        authority, "mongodb", _once(*hosts, *(form for host in hosts for form in _forms(host, places)), *_LOCAL)
    )
    of_broker = issue(authority, "rabbitmq", _once(broker, *_forms(broker, places), *_LOCAL))
    return {
        **of_api,
        "hascheduler-mongodb-tls": {**ca, TLS_BOTH: members.key + members.cert},
        "hascheduler-rabbitmq-tls": {**ca, TLS_CERT: of_broker.cert, TLS_KEY: of_broker.key},
    }


def authority_files(authority: Issued) -> SecretFiles:
    return {AUTHORITY: {CA_CERT: authority.cert, AUTHORITY_KEY: authority.key}}


def read_authority(folder: Path) -> Issued:
    """The one that an earlier run has written into ``folder``."""
    try:
        cert, key = ((folder / AUTHORITY / name).read_text(encoding="utf-8") for name in (CA_CERT, AUTHORITY_KEY))
    except OSError as error:
        raise InvalidInput(
            ("--renew",), f"{error.filename}: {error.strerror}", "the folder that an earlier --out has written"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(
            ("--renew",), f"{folder / AUTHORITY} holds no PEM files", "as `hascheduler secrets` wrote them"
        ) from None
    return Issued(cert, key)


def _forms(host: str, places: Places) -> Sequence[str]:
    """What a Service, or a pod of a StatefulSet by its own (``pod.service``), is called from its own namespace and from
    others; an address of elsewhere has one form."""
    first, _, rest = host.partition(".")
    if rest and ("." in rest or not first.rpartition("-")[2].isdecimal()):
        return (host,)
    return (host, *(f"{host}.{places.namespace}{tail}" for tail in ("", ".svc", ".svc.cluster.local")))


def _once(*hosts: str) -> Sequence[str]:
    return list(dict.fromkeys(hosts))


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
    # Readable for the owner alone from the start on; never through a link that is there already.
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)


def _mongodb_uri(user: str, password: str, places: Places) -> str:
    members = ",".join(places.members)
    tls = "&tls=true" if places.tls else ""
    return f"mongodb://{user}:{password}@{members}/?replicaSet={places.replica_set}&authSource={places.database}{tls}"


def _amqp_url(user: str, password: str, places: Places) -> str:
    port = _AMQPS_PORT if places.tls else _AMQP_PORT
    broker = places.broker if ":" in places.broker else f"{places.broker}:{port}"
    return f"amqp{'s' if places.tls else ''}://{user}:{password}@{broker}/"
