"""The secrets that stand in the repository open nothing but a cluster on a laptop."""

from pathlib import Path

import pytest
import yaml

from hascheduler.model.token import PUBLISHED_PREFIX
from hascheduler.settings import read_settings
from tests.manifests.making import make_secrets
from tests.manifests.rendering import ELSEWHERE, KIND, ROOT, VARIANTS, rendered
from tests.unit.cli.invoking import invoke

ALLOWED = {"HASCHEDULER_DEVELOPMENT_SECRETS": "allowed"}
NOWHERE = "127.0.0.1:1"
PUBLISHED = {
    "ADMIN_TOKEN": f"{PUBLISHED_PREFIX}admin-token",
    "MONGODB_URI": f"mongodb://scheduler:{PUBLISHED_PREFIX}mongodb-scheduler@{NOWHERE}/?replicaSet=rs0",
    "AMQP_URL": f"amqp://scheduler:{PUBLISHED_PREFIX}rabbitmq-scheduler@{NOWHERE}/",
}
OWN = {
    "ADMIN_TOKEN": "hsk_1234567890abcdefghij",
    "MONGODB_URI": f"mongodb://scheduler:own@{NOWHERE}/{PUBLISHED_PREFIX}database?replicaSet=rs0",
    "AMQP_URL": f"amqp://{PUBLISHED_PREFIX}user:own@{NOWHERE}/",
}
COMMANDS = (("serve",), ("processor", "hascheduler.handlers.log"), ("migrate",))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("setting", PUBLISHED)
@pytest.mark.parametrize("from_file", [False, True])
def test_a_process_refuses_a_published_secret_with_a_line_that_says_what_would_be_right(
    tmp_path: Path, command: tuple[str, ...], setting: str, from_file: bool
) -> None:
    file = tmp_path / "secret"
    file.write_text(PUBLISHED[setting] + "\n")
    given = {f"{setting}_FILE": str(file)} if from_file else {setting: PUBLISHED[setting]}
    ended = invoke(*command, **{f"HASCHEDULER_{name}": value for name, value in given.items()})
    assert ended.status == 2
    assert ended.err.count("\n") == 1
    assert ended.err.startswith(f"hascheduler: HASCHEDULER_{setting}: is published in the repository")
    assert "k8s/make-secrets" in ended.err
    assert "HASCHEDULER_DEVELOPMENT_SECRETS" in ended.err
    assert PUBLISHED_PREFIX not in ended.err


@pytest.mark.parametrize(
    ("secrets", "more"), [(OWN, {}), (PUBLISHED, ALLOWED)], ids=["those of one's own", "allowed for a laptop"]
)
def test_what_is_not_published_or_is_allowed_is_taken(
    monkeypatch: pytest.MonkeyPatch, secrets: dict[str, str], more: dict[str, str]
) -> None:
    for name, value in {**{f"HASCHEDULER_{name}": value for name, value in secrets.items()}, **more}.items():
        monkeypatch.setenv(name, value)
    assert read_settings().admin_token.get_secret_value() == secrets["ADMIN_TOKEN"]


@pytest.mark.parametrize(("wrong", "option"), [("keyfile", "--keyfile"), ("admin-password", "--users-from")])
def test_no_replica_set_and_no_user_is_made_with_published_ones(tmp_path: Path, wrong: str, option: str) -> None:
    folder = make_secrets(tmp_path / "own") / "hascheduler-mongodb"
    (folder / wrong).write_text((ROOT / KIND / "secrets/hascheduler-mongodb" / wrong).read_text())
    command = (
        *("bootstrap", "mongodb", "--members", NOWHERE, "--timeout", "1ms"),
        *("--keyfile", str(folder / "keyfile"), "--users-from", str(folder)),
    )
    ended = invoke(*command)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith(f"hascheduler: {option}: ")
    assert "published in the repository" in ended.err


@pytest.mark.parametrize("folder", VARIANTS)
def test_published_secrets_and_a_port_of_the_nodes_are_there_for_kind_alone(folder: str) -> None:
    objects, is_kind = rendered(folder), folder in (KIND, ELSEWHERE)
    types = {one["metadata"]["name"]: one["spec"].get("type", "ClusterIP") for one in objects.of("Service")}
    assert types["hascheduler"] == ("NodePort" if is_kind else "ClusterIP")
    assert set(types.values()) <= {"ClusterIP", types["hascheduler"]}
    assert bool(objects.of("Secret")) is is_kind
    allows = {container.name: objects.settings(container).get("HASCHEDULER_DEVELOPMENT_SECRETS")
              for container in objects.containers() if container.is_ours}  # fmt: skip
    assert set(allows.values()) == {"allowed" if is_kind else None}


def test_kind_shows_the_port_on_the_laptops_loopback_alone() -> None:
    nodes = yaml.safe_load((ROOT / "kind/cluster.yaml").read_text())["nodes"]
    mappings = [mapping for node in nodes for mapping in node.get("extraPortMappings", ())]
    assert {(mapping["listenAddress"], mapping["hostPort"]) for mapping in mappings} == {("127.0.0.1", 8080)}
    ports = rendered(KIND).get("Service", "hascheduler")["spec"]["ports"]
    assert [mapping["containerPort"] for mapping in mappings] == [port["nodePort"] for port in ports]
