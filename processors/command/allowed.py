"""Which programs may run.

A path names an entry of a directory, whichever way leads there, so the directory's part is resolved before paths are
compared. The last part is not, for what is listed: on a system where ``ls`` and ``sh`` are links to one busybox,
listing ``ls`` must not allow ``sh``. A link that is not listed itself may run if what it finally leads to is.
"""

import os
from collections.abc import Mapping

from hascheduler.errors import InvalidInput

ALLOW = "HASCHEDULER_COMMAND_ALLOW"
_PATH = ("payload", "argv", 0)


def allowed_executable(program: str, environment: Mapping[str, str]) -> str:
    """The path to execute for ``program``: what is listed, never a link to it, which could change after the check.

    A program that is not allowed, or not there, is an `InvalidInput`; so is a setting that can't be read.
    """
    listed = [text for part in environment.get(ALLOW, "").split(",") if (text := part.strip())]
    for path in listed:
        if not path.startswith("/"):
            raise InvalidInput((ALLOW,), f"{path!r} is not absolute", "absolute paths, comma-separated")
    entries = {_entry(path) for path in listed}
    for path in (_entry(program), os.path.realpath(program)):
        if path in entries:
            if not os.path.isfile(path):
                raise InvalidInput(_PATH, f"there is no program at {program!r} on this processor", "one that is there")
            return path
    allowed = f"one of {', '.join(listed)}" if listed else f"{ALLOW} on the processor, which is not set, to list it"
    raise InvalidInput(_PATH, f"{program!r} is not allowed to run", allowed)


def _entry(path: str) -> str:
    directory, name = os.path.split(path)
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(directory), name)
