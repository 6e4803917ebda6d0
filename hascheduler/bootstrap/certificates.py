"""A private certificate authority, and the certificates that it signs, made by the ``openssl`` of this machine.

::

    authority (ten years) ──► hascheduler-tls            the API, and ca.crt for all who connect to anything
                          ──► hascheduler-mongodb-tls    members, who show it to each other too
                          ──► hascheduler-rabbitmq-tls   the broker

The authority's key signs and does nothing else: it becomes no Secret, and stays with the operator who made it. A client
that trusts the authority trusts what it signs later, so certificates are replaced while connections go on.
"""

import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from hascheduler.errors import InvalidInput

AUTHORITY_DAYS = 3_650
CERTIFICATE_DAYS = 397
"""The longest that browsers accept: the API is read in browsers too."""
_PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Issued:
    """PEM texts: a certificate, and its key without a password."""

    cert: str
    key: str


def new_authority(name: str) -> Issued:
    """It signs certificates of servers, and no further authority. `InvalidInput` where there is no ``openssl``."""
    with _openssl_folder() as openssl:
        key = openssl.key()
        openssl.write(
            "authority.cnf",
            "[req]\ndistinguished_name=names\nprompt=no\nx509_extensions=more\n"
            f"[names]\nCN={name}\n"
            "[more]\nbasicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign,cRLSign\n"
            "subjectKeyIdentifier=hash\n",
        )
        cert = openssl.run(
            *("req", "-x509", "-new", "-sha256", "-config", "authority.cnf", "-key", "key"),
            *("-days", str(AUTHORITY_DAYS), "-set_serial", _serial()),
        )
        return Issued(cert, key)


def issue(authority: Issued, name: str, hosts: Sequence[str]) -> Issued:
    """For a server that is reached as one of ``hosts``, names or addresses; it may connect with it as well.

    `InvalidInput` where ``authority`` is none.
    """
    with _openssl_folder() as openssl:
        key = openssl.key()
        openssl.write("authority.crt", authority.cert)
        openssl.write("authority.key", authority.key)
        openssl.write("server.cnf", f"[req]\ndistinguished_name=names\nprompt=no\n[names]\nCN={name}\n")
        openssl.write(
            "more.cnf",
            "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
            "extendedKeyUsage=serverAuth,clientAuth\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
            f"subjectAltName={','.join(_alternative(host) for host in hosts)}\n",
        )
        openssl.write("request", openssl.run("req", "-new", "-sha256", "-config", "server.cnf", "-key", "key"))
        cert = openssl.run(
            *("x509", "-req", "-sha256", "-in", "request", "-CA", "authority.crt", "-CAkey", "authority.key"),
            *("-days", str(CERTIFICATE_DAYS), "-set_serial", _serial(), "-extfile", "more.cnf"),
        )
        return Issued(cert, key)


@dataclass(frozen=True, slots=True)
class _OpenSsl:
    openssl: str
    folder: Path

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def key(self) -> str:
        """A new key on P-256, the curve that every TLS library has; also in the file ``key``."""
        key = self.run(
            "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt", "ec_param_enc:named_curve"
        )
        self.write("key", key)
        return key

    def run(self, *arguments: str) -> str:
        done = subprocess.run(  # noqa: S603  # openssl, with words of ours
            [self.openssl, *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
        )
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise InvalidInput(("openssl",), f"{arguments[0]}: {said[-1] if said else done.returncode}")
        return done.stdout


@contextmanager
def _openssl_folder() -> Iterator[_OpenSsl]:
    """A folder for the owner alone, gone with all keys in it at the end."""
    openssl = shutil.which("openssl")
    if openssl is None:
        expected = "to have it, as the image hascheduler does, or --no-certificates where others make them"
        raise InvalidInput(("openssl",), "is not on the PATH", expected)
    with TemporaryDirectory(prefix="hascheduler-certificates-") as folder:
        yield _OpenSsl(openssl, Path(folder))


def _serial() -> str:
    """Positive, at most 20 bytes, and never again the same."""
    return f"0x{secrets.randbits(127) | 1 << 126:x}"


def _alternative(host: str) -> str:
    try:
        return f"IP:{ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"
