"""Every setting as an option, derived from `Settings`, so that neither help nor options can become stale."""

import inspect
import signal
import sys
import threading
from collections.abc import Collection, Sequence
from typing import Annotated, Any

from hascheduler.cli.options import Command, keyword, option, with_parameters
from hascheduler.cli.output.logs import configure_logging
from hascheduler.settings import PREFIX, SECRETS, Settings, described, read_settings, variable

_SETTINGS_HELP = (
    "Each setting is an option and an environment variable, with its default in brackets; the option takes"
    " precedence. Secrets can be read from files named by"
    f" {', '.join(f'{PREFIX}{secret}_FILE' for secret in SECRETS)}."
)


def with_settings(command: Command, names: Collection[str] = (), *, first: Sequence[str] = ()) -> Command:
    """Return ``command`` with one more option for each setting, or for each of ``names``.

    Its help lists those of ``first`` before all others, and counts them. The command gets all settings as its argument
    ``settings``; the log is configured, and SIGTERM ends the process.
    """
    fields = {name: field for name, field in Settings.model_fields.items() if not names or name in names}
    fields = {name: fields[name] for name in (*first, *fields)}
    own = [parameter for name, parameter in inspect.signature(command).parameters.items() if name != "settings"]
    options = [_option(name, field.annotation) for name, field in fields.items()]

    def run(**values: Any) -> Any:
        exit_on_sigterm()
        overrides = {name: values.pop(name) for name in fields}
        settings = read_settings(**overrides)
        _require_uri(settings)
        configure_logging(settings, values.get("modules") or ())
        return command(**values, settings=settings)

    counted = f" It uses the first {len(first)}; it accepts the others too, so that a deployment can share them."
    help = f"{inspect.cleandoc(command.__doc__ or '')}\n\n{_SETTINGS_HELP}{counted if first else ''}"
    return with_parameters(run, [*own, *options], help)


def exit_on_sigterm() -> None:
    """Let SIGTERM end the process immediately, until a loop takes the signal over.

    Without that, process 1 of a container would ignore it: the kernel has no default action for that process, and the
    pod would be killed at the end of its grace period.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _require_uri(settings: Settings) -> None:
    """Raise an error for a bad URI before the command imports and opens everything else, which takes time."""
    from hascheduler.mongo.connection import require_uri  # imports the driver, which help does not need

    require_uri(settings.mongodb_uri.get_secret_value())
    for uri in dict.fromkeys(settings.shard_uris[1:]):
        require_uri(uri, "HASCHEDULER_SHARD_MONGODB_URIS")


def _option(name: str, annotation: object) -> inspect.Parameter:
    flag = "--" + variable(name).removeprefix(PREFIX).lower().replace("_", "-")
    # Texts, not numbers: the settings check them, and their errors are the same as for a variable.
    kind, spec = (bool, f"{flag}/--no-{flag[2:]}") if annotation is bool else (str, f"{flag} VALUE")
    text, default = described(name)
    help = f"{variable(name)}: {text} [{default}]"
    return keyword(name, Annotated[kind | None, option(spec, help, show_default=False)])
