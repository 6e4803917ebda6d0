"""Runs the command line inside this process, as a user would outside: arguments in, status and output out."""

import asyncio
import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import orjson

from hascheduler.__main__ import main


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        answer = orjson.loads(self.out)
        assert isinstance(answer, dict)
        return answer


def invoke(*arguments: str, input: str = "", **variables: str) -> Ended:
    """Without a terminal. The environment is this one's, less our own variables."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HASCHEDULER_", "TZ"))}
    set_here = {"COLUMNS": "80", "TZ": "UTC", "HASCHEDULER_CONFIG": os.devnull, **variables}
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, {**clean, **set_here}, clear=True),
        patch.object(sys, "argv", ["hascheduler", *arguments]),
        patch.object(sys, "stdin", io.StringIO(input)),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Ended(status, out.getvalue(), err.getvalue())


class Replica:
    """Runs commands against the replica at ``url``, while this loop serves it."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def run(self, *arguments: str, input: str = "", **variables: str) -> Ended:
        given = {"HASCHEDULER_URL": self.url, **variables}
        return await asyncio.to_thread(invoke, *arguments, input=input, **given)

    async def done(self, *arguments: str, input: str = "", **variables: str) -> Ended:
        ended = await self.run(*arguments, input=input, **variables)
        assert ended.status == 0, ended
        return ended

    async def json(self, *arguments: str, input: str = "", **variables: str) -> Any:
        return (await self.done(*arguments, "--json", input=input, **variables)).json
