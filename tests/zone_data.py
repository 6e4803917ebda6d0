"""Other time-zone data than those installed: for a process of its own, or for a while in this one."""

import shutil
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch
from zoneinfo import ZoneInfo

import tzdata

from hascheduler.model.values.zone_data import read_zone
from hascheduler.triggers import cron, local_order, zones


def write_zone_data(folder: Path, changed: Mapping[str, int], version: str = "2099z") -> None:
    """Make a package ``tzdata`` in ``folder``: the installed one, but for the ``changed`` zones, whose offset from UTC
    is always so many seconds. A process in whose PYTHONPATH the folder stands has these data."""
    installed = Path(tzdata.__file__).parent
    copy = shutil.copytree(installed, folder / "tzdata", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "__init__.py").write_text(f'__version__ = "2099.26"\nIANA_VERSION = "{version}"\n')
    for zone, offset_s in changed.items():
        (copy / "zoneinfo" / zone).write_bytes(fixed_zone(offset_s))


def fixed_zone(offset_s: int) -> bytes:
    """A file of RFC 8536, version 1, with one type of local time and no change of it."""
    name = b"ALT\0"
    return struct.pack(">4sB15x6l", b"TZif", 0, 0, 0, 0, 0, 1, len(name)) + struct.pack(">lBB", offset_s, 0, 0) + name


@contextmanager
def other_zone_data(changed: Mapping[str, str]) -> Iterator[None]:
    """Until the end, the first zone of each pair has the rules of the second."""

    def read(name: str) -> ZoneInfo:
        return read_zone(changed.get(name, name))

    _forget()
    with patch.object(zones, "read_zone", read):
        yield
    _forget()


def _forget() -> None:
    for cached in (zones.zone_of, cron._read, local_order._offset_s):
        cached.cache_clear()
