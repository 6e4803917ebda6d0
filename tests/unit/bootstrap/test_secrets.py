"""The files of the Secrets: what is in them, who may read them, and that those in the repository are ours."""

import hashlib
import json
import re
from base64 import b64decode
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from hascheduler.bootstrap.inputs import parse_members, read_key, read_passwords
from hascheduler.errors import InvalidInput
from hascheduler.rabbitmq.topology import DISPATCH_EXCHANGE, PARKED_QUEUE, queue_name
from hascheduler.settings import read_settings
from tests.unit.cli.invoking import Ended, invoke

CONTRACT = {
    "hascheduler-mongodb": {"keyfile", "scheduler-password", "processor-password", "admin-password"},
    "hascheduler-rabbitmq": {"definitions.json"},
    "hascheduler-scheduler": {"mongodb-uri", "amqp-url", "admin-token"},
    "hascheduler-processor": {"mongodb-uri", "amqp-url"},
}
OF_TLS = {
    "hascheduler-tls": {"ca.crt", "tls.crt", "tls.key"},
    "hascheduler-mongodb-tls": {"ca.crt", "tls-combined.pem"},
    "hascheduler-rabbitmq-tls": {"ca.crt", "tls.crt", "tls.key"},
}
AUTHORITY = {"authority": {"ca.crt", "ca.key"}}
IN_THE_REPOSITORY = Path(__file__).parents[3] / "k8s/overlays/kind/secrets"


def _made(folder: Path, *arguments: str) -> Ended:
    ended = invoke("secrets", "--out", str(folder), *arguments)
    assert ended.status == 0, ended.err
    return ended


def _files(folder: Path) -> dict[str, set[str]]:
    return {inner.name: {file.name for file in inner.iterdir()} for inner in folder.iterdir()}


def _texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_there_is_a_folder_for_each_secret_and_a_line_that_makes_it(tmp_path: Path) -> None:
    out = tmp_path / "some secrets"
    ended = _made(out, "--namespace", "jobs")
    assert _files(out) == {**CONTRACT, **OF_TLS, **AUTHORITY}
    # The authority's key is no Secret: it stays with who made it.
    assert ended.out.splitlines() == [
        f"kubectl --namespace jobs create secret generic {secret} --from-file='{out}/{secret}'"
        for secret in {**CONTRACT, **OF_TLS}
    ]


@pytest.mark.parametrize("beginning", [r"/work hascheduler:\S+ \\\n +", r"'cd /tmp\n +hascheduler "])
def test_what_the_image_alone_makes_is_where_its_commands_look(
    beginning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page runs it in a folder that both sides have, so that what it prints fits there as well."""
    page = (IN_THE_REPOSITORY.parents[3] / "docs/operations/kubernetes.md").read_text()
    [arguments] = re.findall(beginning + r"(secrets --out secrets [^|>\n]+)", page)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOME", raising=False)
    ended = invoke(*arguments.split())
    folders = re.findall(r"--from-file=(\S+)", ended.out)
    assert (ended.status, folders) == (0, [f"secrets/{secret}" for secret in CONTRACT]), ended.err
    assert _files(tmp_path / "secrets") == CONTRACT


def test_the_api_alone_may_have_a_certificate(tmp_path: Path) -> None:
    """As k8s/components/https wants it, with servers that are reached without TLS; and it can be renewed."""
    of_api = {"hascheduler-tls": OF_TLS["hascheduler-tls"]}
    _made(tmp_path / "one", "--no-tls", "--certificates")
    assert _files(tmp_path / "one") == {**CONTRACT, **of_api, **AUTHORITY}
    texts = _texts(tmp_path / "one")
    assert texts["hascheduler-scheduler/amqp-url"].startswith("amqp://")
    assert "tls" not in texts["hascheduler-scheduler/mongodb-uri"]
    _made(tmp_path / "renewed", "--no-tls", "--renew", str(tmp_path / "one"))
    assert _files(tmp_path / "renewed") == of_api


def test_certificates_are_made_with_tls_unless_others_make_them(tmp_path: Path) -> None:
    for option in ("--no-tls", "--no-certificates", "--development"):
        _made(tmp_path / option, option)
        assert _files(tmp_path / option) == CONTRACT, option
    uris = {option: (tmp_path / option / "hascheduler-processor/mongodb-uri").read_text()[-8:] for option in
            ("--no-tls", "--no-certificates", "--development")}  # fmt: skip
    assert {option for option, end in uris.items() if end == "tls=true"} == {"--no-certificates"}


def test_new_certificates_replace_the_old_ones_and_nothing_else(tmp_path: Path) -> None:
    _made(tmp_path / "first")
    ended = _made(tmp_path / "second", "--renew", str(tmp_path / "first"))
    assert _files(tmp_path / "second") == OF_TLS
    assert all(line.endswith("--dry-run=client --output=yaml | kubectl replace --filename=-")
               for line in ended.out.splitlines())  # fmt: skip
    first, second = _texts(tmp_path / "first"), _texts(tmp_path / "second")
    assert {path for path, text in second.items() if text == first[path]} == {f"{name}/ca.crt" for name in OF_TLS}
    refused = invoke("secrets", "--out", str(tmp_path / "third"), "--renew", str(tmp_path / "second"))
    assert (refused.status, refused.err.count("\n"), "--renew: " in refused.err) == (2, 1, True)


def test_without_openssl_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = invoke("secrets", "--out", str(tmp_path / "out"))
    assert refused.status == 2
    assert refused.err.startswith("hascheduler: openssl: is not on the PATH; expected to have it")
    assert not (tmp_path / "out").exists()
    _made(tmp_path / "out", "--no-certificates")


def test_only_the_owner_may_read_them(tmp_path: Path) -> None:
    out = tmp_path / "made" / "here"
    _made(out)
    modes = {path: path.stat().st_mode & 0o777 for path in [out, *out.rglob("*")]}
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in modes}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    _made(tmp_path / "one")
    before = _texts(tmp_path)
    ended = invoke("secrets", "--out", str(tmp_path / "one"))
    assert (ended.status, ended.err) == (
        2, f"hascheduler: --out: {tmp_path / 'one'} is not empty; expected a new or an empty folder\n",
    )  # fmt: skip
    assert _texts(tmp_path) == before


def test_each_time_all_values_are_new_and_none_is_twice(tmp_path: Path) -> None:
    secrets: list[str] = []
    for name in ("one", "two"):
        _made(tmp_path / name)
        texts = _texts(tmp_path / name)
        secrets += [text for path, text in texts.items() if path.rpartition("/")[0] == "hascheduler-mongodb"]
        secrets += [str(URL(texts[f"hascheduler-{who}/amqp-url"]).password) for who in ("scheduler", "processor")]
        secrets += [texts["hascheduler-scheduler/admin-token"]]
    assert all(len(secret) >= 43 for secret in secrets)
    assert len(set(secrets)) == len(secrets) == 2 * 7


def test_the_parts_fit_together(tmp_path: Path) -> None:
    _made(
        tmp_path, "--members", "b.example:27018,a.example", "--set", "main", "--rabbitmq-host", "mq.example:5671",
        "--events-exchange", "events",
    )  # fmt: skip
    texts = _texts(tmp_path)
    users = {user["name"]: user for user in json.loads(texts["hascheduler-rabbitmq/definitions.json"])["users"]}
    for who in ("scheduler", "processor"):
        password = texts[f"hascheduler-mongodb/{who}-password"]
        assert texts[f"hascheduler-{who}/mongodb-uri"] == (
            f"mongodb://{who}:{password}@a.example:27017,b.example:27018/?replicaSet=main&authSource=hascheduler&tls=true"
        )
        url = URL(texts[f"hascheduler-{who}/amqp-url"])
        assert (url.scheme, url.user, url.authority.rpartition("@")[2]) == ("amqps", who, "mq.example:5671")
        digest = b64decode(users[who]["password_hash"])
        assert hashlib.sha256(digest[:4] + str(url.password).encode()).digest() == digest[4:]
    assert read_key(tmp_path / "hascheduler-mongodb/keyfile") == texts["hascheduler-mongodb/keyfile"]
    assert read_passwords(tmp_path / "hascheduler-mongodb").admin == texts["hascheduler-mongodb/admin-password"]
    assert not any(
        text.endswith("\n") for path, text in texts.items() if not path.endswith((".json", ".pem", ".crt", ".key"))
    )


def test_the_settings_take_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _made(tmp_path)
    for name in ("mongodb-uri", "amqp-url", "admin-token"):
        variable = f"HASCHEDULER_{name.upper().replace('-', '_')}_FILE"
        monkeypatch.setenv(variable, str(tmp_path / "hascheduler-scheduler" / name))
    monkeypatch.setenv("HASCHEDULER_HTTP_HOST", "0.0.0.0")  # as in a pod
    assert read_settings().tokens_demanded


def test_what_the_repository_holds_for_development_is_what_the_command_makes(tmp_path: Path) -> None:
    _made(tmp_path, "--development", "--members", "mongodb-0.mongodb")
    made = _texts(tmp_path)
    assert _texts(IN_THE_REPOSITORY) == made
    # A person who finds one of them somewhere sees what it is.
    assert all("evelopment" in text for path, text in made.items() if not path.endswith(".json"))


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The broker's, of a deployment that has an exchange for its events."""
    out = tmp_path_factory.mktemp("made") / "secrets"
    _made(out, "--events-exchange", "events")
    made: dict[str, Any] = json.loads((out / "hascheduler-rabbitmq/definitions.json").read_text())
    return made


def _allowed(permissions: list[dict[str, str]], user: str, kind: str, name: str) -> bool:
    [mine] = [one for one in permissions if one["user"] == user]
    return re.search(mine[kind], name) is not None


@pytest.mark.parametrize(
    ("user", "kind", "name", "allowed"),
    [
        ("scheduler", "configure", DISPATCH_EXCHANGE, True),
        ("scheduler", "write", "events", True),
        ("scheduler", "write", "hascheduler.events", False),
        ("scheduler", "read", DISPATCH_EXCHANGE, False),
        ("scheduler", "configure", queue_name("x"), False),
        ("processor", "configure", queue_name("pod-1.a1b2c3d4"), True),
        ("processor", "read", queue_name("pod-1.a1b2c3d4"), True),
        ("processor", "configure", PARKED_QUEUE, True),
        ("processor", "read", PARKED_QUEUE, False),
        ("processor", "write", "hascheduler_processor_x", False),
    ],
)
def test_who_may_do_what_on_the_broker(
    definitions: dict[str, Any], user: str, kind: str, name: str, allowed: bool
) -> None:
    assert _allowed(definitions["permissions"], user, kind, name) is allowed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--members", "a:b"], "--members: 'a:b' is no address"),
        (["--members", "a:0"], "--members: 'a:0' is no address"),
        (["--members", "a/b"], "--members: 'a/b' is no address"),
        (["--members", "a,a:27017"], "--members: a:27017 is there twice"),
        (["--members", ","], "--members: there are none"),
        (["--members", ",".join("abcdefgh")], "--members: 8 members; expected 7 at most"),
        (["--namespace", "Jobs"], "--namespace: 'Jobs'"),
        (["--set", "r s"], "--set: 'r s'"),
        (["--database", "a/b"], "--database: 'a/b'"),
        (["--rabbitmq-host", "x@y"], "--rabbitmq-host: 'x@y'"),
        (["--events-exchange", "a b"], "--events-exchange: 'a b'"),
    ],
)
def test_what_is_no_name_is_refused_before_anything_is_written(tmp_path: Path, arguments: list[str], said: str) -> None:
    ended = invoke("secrets", "--out", str(tmp_path / "out"), *arguments)
    assert ended.status == 2
    assert ended.err.startswith(f"hascheduler: {said}")
    assert not (tmp_path / "out").exists()


def test_members_have_one_order_in_whatever_order_they_are_given() -> None:
    orders = [parse_members(["c", "a:2,b"]), parse_members(["b,c,a:2"])]
    assert orders == [("a:2", "b:27017", "c:27017")] * 2
    assert all(before < after for before, after in pairwise(orders[0]))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("abc def\nghi\n", "abcdefghi"),
        ("- firstkey\n- secondkey\n", "firstkey"),
        ("abcde", None),
        ("", None),
        ("abc*defg", None),
    ],
)
def test_a_key_is_read_as_the_members_read_it(tmp_path: Path, text: str, key: str | None) -> None:
    file = tmp_path / "keyfile"
    file.write_text(text)
    if key is not None:
        assert read_key(file) == key
        return
    with pytest.raises(InvalidInput, match="holds no key; expected 6 to 1,024 characters"):
        read_key(file)


@pytest.mark.parametrize("text", ["", "\n", "two\nlines", "tab\there"])
def test_a_file_without_a_password_is_refused(tmp_path: Path, text: str) -> None:
    for name in ("scheduler-password", "processor-password", "admin-password"):
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match="scheduler-password holds no password"):
        read_passwords(tmp_path)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"--users-from: .*scheduler-password: No such file"):
        read_passwords(tmp_path)
    with pytest.raises(InvalidInput, match=r"--keyfile: .*keyfile: No such file"):
        read_key(tmp_path / "keyfile")
