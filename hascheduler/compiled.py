"""The pure rooms that run as native code, and a check that it was made from the present sources.

Wheels come with and without native code (see `hatch_build.py`); both have all sources, and decide the same. If a module
exists in both forms Python takes the native one, so an edit of its source would have no effect: the digest of the
compiled sources reveals that.
"""

import hashlib
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

ROOMS = ("mirror", "dispatch", "model.documents", "triggers")
"""The rooms that are compiled as a whole: every event and every decision passes through them.

Rooms that gain next to nothing are left out (`election`, most of `model`).
"""
_MODULES = ("model/values/fields.py", "model/event.py")
"""Single modules of other rooms: reading the fields of documents, and the positions of events."""
DIGEST_FILE = "compiled.sha256"
_PACKAGE = Path(__file__).parent


def compiled_sources(package: Path = _PACKAGE) -> list[Path]:
    """Return the compiled sources in order."""
    in_rooms = {path for room in ROOMS for path in _folder(package, room).rglob("*.py")}
    return sorted(in_rooms | {package / name for name in _MODULES})


def sources_digest(package: Path = _PACKAGE) -> str:
    """Return a digest that differs if any of the sources does."""
    digest = hashlib.sha256()
    for path in compiled_sources(package):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(source)}\n".encode() + source)
    return digest.hexdigest()


@cache
def compiled_rooms(package: Path = _PACKAGE) -> tuple[str, ...]:
    """Return those of `ROOMS` that this Python runs as native code; none if all is pure Python."""
    return tuple(room for room in ROOMS if _is_native(_folder(package, room) / "__init__"))


def is_stale(package: Path = _PACKAGE) -> bool:
    """Return True if sources were edited after they were compiled, so that the running code differs from them."""
    if not compiled_rooms(package):
        return False
    try:
        made_from = (package / DIGEST_FILE).read_text().strip()
    except OSError:
        return True
    return made_from != sources_digest(package)


def _folder(package: Path, room: str) -> Path:
    return package.joinpath(*room.split("."))


def _is_native(module: Path) -> bool:
    return any(module.with_name(module.name + suffix).exists() for suffix in EXTENSION_SUFFIXES)
