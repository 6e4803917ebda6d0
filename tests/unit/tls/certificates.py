"""Certificates as people make them, with the ``openssl`` of this machine."""

import gc
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2")


@dataclass(frozen=True, slots=True)
class Issued:
    """``both`` holds the certificate and its key, as MongoDB wants it."""

    cert: str
    key: str
    both: str


class Authority:
    """Owner of a folder with its own certificate and all that it issued."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._issued: dict[tuple[str, str, str], Issued] = {}
        self.cert = str(folder / "ca.pem")
        self._key = str(folder / "ca.key")
        _request(
            "-nodes", "-keyout", self._key, "-out", self.cert, "-subj", "/CN=test", *_usage("critical,keyCertSign")
        )

    def issue(self, name: str, names: str = "IP:127.0.0.1,DNS:localhost", password: str = "") -> Issued:
        """Return its certificate for these, the same one each time."""
        known = self._issued.get((name, names, password))
        if known is not None:
            return known
        stem = f"{name}-{len(self._issued)}" if (self._folder / f"{name}.pem").exists() else name
        cert, key, both = (self._folder / f"{stem}.{kind}" for kind in ("pem", "key", "both"))
        _request(
            *("-CA", self.cert, "-CAkey", self._key, "-keyout", str(key), "-out", str(cert), "-subj", f"/CN={name}"),
            *(("-passout", f"pass:{password}") if password else ("-nodes",)),
            *("-addext", f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE"),
            *("-addext", "extendedKeyUsage=serverAuth,clientAuth"),
        )
        both.write_text(cert.read_text() + key.read_text())
        issued = self._issued[name, names, password] = Issued(str(cert), str(key), str(both))
        return issued


def _usage(usage: str) -> tuple[str, str]:
    return "-addext", f"keyUsage={usage}"


def _request(*arguments: str) -> None:
    subprocess.run(["openssl", "req", "-x509", *_KEY, *arguments], check=True, capture_output=True)


@pytest.fixture(autouse=True)
def no_sockets_left_over() -> Iterator[None]:
    """MongoDB's driver leaves the socket of a handshake that failed to the garbage collection: have that done here,
    where it is to be expected, and not in whatever test comes later."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
