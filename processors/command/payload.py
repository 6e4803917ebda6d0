"""What a command's payload may say, field by field."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from processors.command.environment import is_reserved
from processors.payloads import DurationMs, Payload, shown, within, wrong

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise wrong("holds a NUL character", "a text without it")
    return text


def _argv(argv: list[str]) -> list[str]:
    if not argv[0].startswith("/"):
        raise wrong(f"the program {shown(argv[0])} is not an absolute path", "a path such as /usr/bin/rsync first")
    return argv


def _cwd(path: str) -> str:
    if not path.startswith("/"):
        raise wrong(f"{shown(path)} is not absolute", "an absolute path of a directory")
    return path


def _env(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if not _NAME.match(name):
            raise wrong(f"{shown(name)} is no name of a variable", "letters, digits and '_'")
        if is_reserved(name):
            raise wrong(f"{name} is not for the payload to set", "variables that do not decide which code runs")
    return env


_Text = Annotated[str, AfterValidator(_no_nul)]


class CommandPayload(Payload):
    argv: Annotated[list[_Text], Field(min_length=1, max_length=1_000), AfterValidator(_argv)]
    env: Annotated[dict[str, _Text], AfterValidator(_env)] = Field(default={}, max_length=200)
    cwd: Annotated[_Text, AfterValidator(_cwd)] = "/"
    stdin: str = ""
    timeout: Annotated[DurationMs, within("100ms", "24h")] = 600_000
    ok_codes: list[Annotated[int, Field(ge=0, le=255)]] = Field(default=[0], min_length=1)
