"""Variables of our containers are read by the program's settings, their arguments by its commands."""

import os
import re
from collections.abc import Iterator
from typing import Any
from unittest import mock

from typer.main import get_command

from hascheduler.cli.app import app
from hascheduler.errors import InvalidInput
from hascheduler.handlers import webhook
from hascheduler.settings import PREFIX, SECRETS, Settings, read_settings, variable
from tests.manifests.objects import Container, Objects

_SETTINGS = {variable(name) for name in Settings.model_fields}
_SECRET_FILES = {f"{PREFIX}{secret}_FILE" for secret in SECRETS}
_OF_COMMANDS = {f"{PREFIX}{name}" for name in ("TOKEN_FILE", "URL", "CA_FILE")}
_OF_HANDLERS = {webhook.ALLOW, webhook.ALLOW_PRIVATE}
_OPENTELEMETRY = {
    "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_SDK_DISABLED",
}  # fmt: skip
"""Of the specification, those that an exporter over HTTP takes."""
_IN_THE_CLUSTER = {"metadata.name": "scheduler-5d4f8c9b7-x2x4z", "status.podIP": "10.244.0.17"}
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


def variables_are_known(objects: Objects) -> Iterator[str]:
    for container in objects.containers():
        referred = {name for word in container.spec.get("args", []) for name in _REFERENCE.findall(word)}
        known = referred | _OPENTELEMETRY
        if container.is_ours:
            known |= _SETTINGS | _SECRET_FILES | _OF_COMMANDS | _OF_HANDLERS
        for name in objects.settings(container).keys() - known:
            if container.is_ours or not name.startswith("RABBITMQ_"):
                yield f"{container.name}: nobody reads {name}"
        for name in referred - objects.settings(container).keys():
            yield f"{container.name}: $({name}) is not set"


def settings_are_accepted(objects: Objects) -> Iterator[str]:
    """By the settings' own checks; what a file holds is not here."""
    for container in objects.containers():
        if container.is_ours:
            try:
                settings_of(objects, container)
            except InvalidInput as error:
                yield f"{container.name}: {error}"


def arguments_are_understood(objects: Objects) -> Iterator[str]:
    for container in objects.containers():
        if container.is_ours:
            if "command" in container.spec:
                yield f"{container.name}: replaces the image's entry point"
            variables = _texts(objects, container)
            words = [_REFERENCE.sub(lambda found: variables.get(found[1], found[0]), word)  # noqa: B023  # at once
                     for word in container.spec.get("args", [])]  # fmt: skip
            try:
                parse_command(get_command(app), "hascheduler", words)
            except Exception as error:  # its class is the command line's own
                yield f"{container.name}: {words}: {error}"


def ports_are_the_settings(objects: Objects) -> Iterator[str]:
    """Where the process listens is where its ports are declared, on all addresses, since others come to it."""
    wanted = {"http": "http", "liveness": "liveness", "health": "health"}
    for container in objects.containers():
        if not container.is_ours or container.initial:
            continue
        try:
            settings = settings_of(objects, container)
        except InvalidInput:
            continue  # told by another rule
        for port in container.spec.get("ports", []):
            setting = wanted.get(port["name"])
            listens = (getattr(settings, f"{setting}_host"), getattr(settings, f"{setting}_port"))
            if listens != ("0.0.0.0", port["containerPort"]):
                yield f"{container.name}: port {port['name']} is {port['containerPort']}, the process has {listens}"


def settings_of(objects: Objects, container: Container) -> Settings:
    """What the process would have; `InvalidInput` where it would refuse to start."""
    texts = _texts(objects, container)
    values = {name: value for name, value in texts.items() if name not in _SECRET_FILES}
    if f"{PREFIX}AMQP_URL_FILE" in texts:
        values[f"{PREFIX}AMQP_URL"] = "amqps://broker/"  # which both kinds of settings take
    with mock.patch.dict(os.environ, values, clear=True):
        return read_settings()


def _texts(objects: Objects, container: Container) -> dict[str, str]:
    """The variables as the kubelet would fill them in."""
    return {
        name: value if isinstance(value, str) else _IN_THE_CLUSTER[value["fieldRef"]["fieldPath"]]
        for name, value in objects.settings(container).items()
    }


def parse_command(command: Any, name: str, words: list[str]) -> None:
    """Raise the command line's own error if it does not understand the words."""
    with command.make_context(name, list(words)) as context:
        if hasattr(command, "resolve_command"):
            name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            parse_command(found, name, rest)
