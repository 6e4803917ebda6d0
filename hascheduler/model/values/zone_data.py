"""Time zones from the package ``tzdata``, independent of the files of the machine.

Replicas must agree about wall times, and the files of an operating system change with its packages. So this module
never searches the path of `zoneinfo` (``PYTHONTZPATH``, ``/usr/share/zoneinfo``).
"""

from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import tzdata

ZONE_DATA_VERSION: str = tzdata.IANA_VERSION
"""The release of the IANA database, such as ``2026f``."""


@lru_cache(1)
def zone_names() -> frozenset[str]:
    """Return the names of all zones, spelt as IANA does; without "Factory", which means "not set"."""
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split()) - {"Factory"}


@lru_cache(1_024)
def read_zone(name: str) -> ZoneInfo:
    """Return one of the `zone_names`; raise `KeyError` for another name, `OSError` or `ValueError` if unreadable."""
    if name not in zone_names():
        raise KeyError(name)
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)
