"""``k8s/make-secrets``: what is in the folder, who may read it, and that what is there stays."""

import hashlib
import json
from base64 import b64decode
from pathlib import Path

import pytest
from yarl import URL

from hascheduler.cli.setup.bootstrap import read_key, read_password
from hascheduler.settings import read_settings
from tests.manifests.making import make_secrets
from tests.manifests.rendering import ROOT, render
from tests.manifests.rules.references import MADE_OUTSIDE

pytestmark = pytest.mark.slow

IN_THE_REPOSITORY = ROOT / "k8s/overlays/kind/secrets"
OF_TLS = {"hascheduler-tls", "hascheduler-mongodb-tls", "hascheduler-rabbitmq-tls"}


def _files(folder: Path) -> dict[str, set[str]]:
    return {inner.name: {file.name for file in inner.iterdir()} for inner in folder.iterdir() if inner.is_dir()}


def _texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("variables", "of_tls", "end"),
    [
        ({}, OF_TLS, "&tls=true"),
        ({"TLS": "no"}, set(), "=hascheduler"),
        ({"TLS": "no", "CERTIFICATES": "yes"}, OF_TLS, "=hascheduler"),
        ({"CERTIFICATES": "no"}, set(), "&tls=true"),
    ],
)
def test_each_secret_has_its_files_for_the_owner_alone_and_kubectl_takes_them(
    tmp_path: Path, variables: dict[str, str], of_tls: set[str], end: str
) -> None:
    made = make_secrets(tmp_path / "new" / "secrets", NAMESPACE="jobs", **variables)
    secrets = {name: files for name, files in MADE_OUTSIDE.items() if name not in OF_TLS - of_tls}
    assert _files(made) == {**secrets, **({"authority": {"ca.crt", "ca.key"}} if of_tls else {})}
    assert {path.stat().st_mode & 0o777 for path in made.rglob("*")} == {0o600, 0o700}
    assert (made / "hascheduler-processor/mongodb-uri").read_text().endswith(end)
    found = {(one["metadata"]["namespace"], one["metadata"]["name"]): set(one["data"]) for one in render(made).all}
    assert found == {("jobs", name): files for name, files in secrets.items()}


def test_a_second_run_makes_new_certificates_and_leaves_all_else(tmp_path: Path) -> None:
    before = _texts(make_secrets(tmp_path / "made"))
    after = _texts(make_secrets(tmp_path / "made", MEMBERS="other.example.com:27017"))
    changed = {path for path in before if after[path] != before[path]}
    assert after.keys() == before.keys()
    assert {path.rpartition("/")[2] for path in changed} == {"tls.crt", "tls.key", "tls-combined.pem"}


def test_the_parts_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_secrets(
        tmp_path / "made", MEMBERS="a.example:27017,b.example:27018", REPLICA_SET="main", BROKER="mq.example:5671",
        CERTIFICATES="no",
    )  # fmt: skip
    texts = _texts(made)
    _demand_hashes(made)
    for who in ("scheduler", "processor"):
        password = read_password(made / f"hascheduler-mongodb/{who}-password")
        assert texts[f"hascheduler-{who}/mongodb-uri"] == (
            f"mongodb://{who}:{password}@a.example:27017,b.example:27018/?replicaSet=main&authSource=hascheduler&tls=true"
        )
        url = URL(texts[f"hascheduler-{who}/amqp-url"])
        assert (url.scheme, url.user, url.authority.rpartition("@")[2]) == ("amqps", who, "mq.example:5671")
    assert read_key(made / "hascheduler-mongodb/keyfile") == texts["hascheduler-mongodb/keyfile"]
    for name in ("mongodb-uri", "amqp-url", "admin-token"):
        variable = f"HASCHEDULER_{name.upper().replace('-', '_')}_FILE"
        monkeypatch.setenv(variable, str(made / "hascheduler-scheduler" / name))
    monkeypatch.setenv("HASCHEDULER_HTTP_HOST", "0.0.0.0")  # as in a pod
    assert read_settings().tokens_demanded


def _demand_hashes(folder: Path) -> None:
    """The broker knows the passwords that clients have."""
    definitions = json.loads((folder / "hascheduler-rabbitmq/definitions.json").read_text())
    for user in definitions["users"]:
        password = URL((folder / f"hascheduler-{user['name']}/amqp-url").read_text()).password or ""
        digest = b64decode(user["password_hash"])
        assert hashlib.sha256(digest[:4] + password.encode()).digest() == digest[4:]


def test_what_the_repository_holds_for_a_laptop_fits_together_and_has_the_same_rights(tmp_path: Path) -> None:
    _demand_hashes(IN_THE_REPOSITORY)
    made = make_secrets(tmp_path / "made", TLS="no", MEMBERS="mongodb-0.mongodb:27017")
    assert _files(IN_THE_REPOSITORY) == _files(made)
    ours, theirs = (
        json.loads((folder / "hascheduler-rabbitmq/definitions.json").read_text())["permissions"]
        for folder in (IN_THE_REPOSITORY, made)
    )
    assert ours == theirs
    for who in ("scheduler", "processor"):
        uris = [(folder / f"hascheduler-{who}/mongodb-uri").read_text() for folder in (IN_THE_REPOSITORY, made)]
        assert len({uri.rpartition("@")[2] for uri in uris}) == 1
