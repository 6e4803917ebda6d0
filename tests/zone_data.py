"""Other time-zone data than the installed ones, for a new process or temporarily for this one."""

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
    """Write the installed package ``tzdata`` to ``folder``, with fixed offsets in seconds for the zones of ``changed``.

    A process with the folder in its PYTHONPATH uses these data.
    """
    installed = Path(tzdata.__file__).parent
    copy = shutil.copytree(installed, folder / "tzdata", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "__init__.py").write_text(f'__version__ = "2099.26"\nIANA_VERSION = "{version}"\n')
    for zone, offset_s in changed.items():
        (copy / "zoneinfo" / zone).write_bytes(fixed_zone(offset_s))


def fixed_zone(offset_s: int) -> bytes:
    """Return a file of RFC 8536, version 1, with one local time type and no transitions."""
    name = b"ALT\0"
    return struct.pack(">4sB15x6l", b"TZif", 0, 0, 0, 0, 0, 1, len(name)) + struct.pack(">lBB", offset_s, 0, 0) + name


@contextmanager
def other_zone_data(changed: Mapping[str, str]) -> Iterator[None]:
    """Give the first zone of each pair the rules of the second, until the block ends."""

    def read(name: str) -> ZoneInfo:
        return read_zone(changed.get(name, name))

    _forget()
    with patch.object(zones, "read_zone", read):
        yield
    _forget()


def _forget() -> None:
    for cached in (zones.zone_of, cron._read, local_order._offset_s):
        cached.cache_clear()
