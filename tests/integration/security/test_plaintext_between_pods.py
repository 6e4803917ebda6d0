"""A member of the replica set with the TLS settings of the production overlay: it speaks TLS alone."""

import asyncio
import re
import struct
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from bson import encode

from hascheduler.mongo.connection import connect
from tests.integration.mongods import mongod
from tests.manifests.making import make_secrets
from tests.manifests.rendering import PRODUCTION, ROOT, rendered

CA = "/run/secrets/tls/ca.crt"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_secrets(tmp_path_factory.mktemp("made") / "secrets")


@pytest.fixture
async def member(secrets: Path, tmp_path: Path) -> AsyncIterator[tuple[int, Path]]:
    """A mongod with the very words of the overlay, but for where its files are: its port, and its certificate."""
    [container] = [one for one in rendered(PRODUCTION).containers() if one.name == "StatefulSet/mongodb mongodb"]
    words = container.spec["command"]
    combined = tmp_path / "tls-combined.pem"
    combined.write_text((secrets / "hascheduler-mongodb-tls/tls-combined.pem").read_text())
    files = {"/run/secrets/tls/tls-combined.pem": str(combined), CA: str(secrets / "authority/ca.crt")}
    own = [files.get(word, word) for word in words[words.index("--tlsMode") :]]
    (tmp_path / "data").mkdir()
    async with mongod(tmp_path / "data", *own) as port:
        yield port, combined


async def _probe(*arguments: str) -> int:
    probe = str(ROOT / "k8s/base/mongodb/member-ready")
    child = await asyncio.create_subprocess_exec("bash", probe, *arguments, stderr=asyncio.subprocess.DEVNULL)
    return await asyncio.wait_for(child.wait(), 30)


async def test_a_member_speaks_tls_alone_and_takes_a_new_certificate_without_a_restart(
    secrets: Path, tmp_path: Path, member: tuple[int, Path]
) -> None:
    port, combined = member
    ca = secrets / "authority/ca.crt"
    # It is the primary of nothing, but writable, which is what the probe looks for.
    assert await _probe(str(port), "tls") == 0
    assert await _probe(str(port)) != 0
    uri = f"mongodb://localhost:{port}/?directConnection=true"
    async with connect(uri, tls_ca_file=str(ca)) as client:
        assert (await client.admin.command("ping"))["ok"] == 1
        before = await asyncio.to_thread(_certificate, port, ca)
        await asyncio.to_thread(make_secrets, secrets)
        combined.write_text((secrets / "hascheduler-mongodb-tls/tls-combined.pem").read_text())
        assert (await client.admin.command("rotateCertificates"))["ok"] == 1
        after = await asyncio.to_thread(_certificate, port, ca)
        assert after != before
        assert after in (secrets / "hascheduler-mongodb-tls/tls-combined.pem").read_text()
        # The connection that was there goes on.
        assert (await client.admin.command("ping"))["ok"] == 1


def _certificate(port: int, ca: Path) -> str:
    command = [
        "openssl", "s_client", "-connect", f"localhost:{port}", "-CAfile", str(ca), "-verify_return_error",
        "-verify_hostname", "localhost",
    ]  # fmt: skip
    shown = subprocess.run(command, input="", capture_output=True, text=True, check=True, timeout=60).stdout
    [certificate] = re.findall(r"-----BEGIN CERTIFICATE-----\n.*?-----END CERTIFICATE-----\n", shown, re.DOTALL)
    return str(certificate)


async def test_a_client_that_speaks_in_plain_text_gets_nothing(member: tuple[int, Path]) -> None:
    """`hello`, which takes no login, and is answered where there is no TLS."""
    reader, writer = await asyncio.open_connection("127.0.0.1", member[0])
    body = b"\0\0\0\0\0" + encode({"hello": 1, "$db": "admin"})
    writer.write(struct.pack("<iiii", 16 + len(body), 1, 0, 2013) + body)
    said = b""
    async with asyncio.timeout(30):
        with suppress(ConnectionError):
            said = await reader.read()
    assert said == b""
    writer.close()
