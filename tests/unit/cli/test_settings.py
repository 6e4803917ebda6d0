"""What the environment says, and what a process makes of it: no variable is overlooked, no combination unsafe."""

import re
from pathlib import Path

import pytest

from hascheduler.assembly_api import auth_config
from hascheduler.assembly_replica import policy_config
from hascheduler.cli.environment import READ_ELSEWHERE, require_known_variables
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.errors import InvalidInput
from hascheduler.model.policy import PRESETS, Criterion, IdleKeyStart
from hascheduler.settings import Settings, read_settings, variables
from hascheduler.shards.databases import ShardDatabases
from tests.unit.cli.invoking import invoke


def read(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(f"HASCHEDULER_{name}", value)
    return read_settings()


@pytest.mark.parametrize(
    ("policy", "bonus_max", "start"),
    [
        ("affinity", None, IdleKeyStart.MIN),
        ("fair", 20_480_000, IdleKeyStart.ZERO),
        ("swimlanes", 20_480_000, IdleKeyStart.MIN),
        ("balanced", 20_480_000, IdleKeyStart.MIN),
        ("tier, score", 20_480_000, IdleKeyStart.MIN),
    ],
)
def test_a_preset_brings_what_goes_with_it(
    monkeypatch: pytest.MonkeyPatch, policy: str, bonus_max: int | None, start: IdleKeyStart
) -> None:
    config = policy_config(read(monkeypatch, POLICY=policy))
    criteria = PRESETS.get(policy, (Criterion.TIER, Criterion.SCORE, Criterion.ARRIVAL))
    assert (config.criteria, config.on_demand_bonus_max, config.idle_key_start) == (criteria, bonus_max, start)


def test_what_is_set_has_precedence_over_the_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(
        monkeypatch, POLICY="fair", MAX_CONCURRENCY="50", ON_DEMAND_BONUS_MAX="none", IDLE_KEY_START="min",
        LEARN_COST="false", COST_ALPHA="0.125", IDLE_TTL="2h",
    )  # fmt: skip
    assert policy_config(settings) == PolicyConfig(
        PRESETS["fair"], 50, None, IdleKeyStart.MIN, learn_cost=False, cost_alpha=125, idle_ttl_ms=7_200_000
    )
    bounded = read(monkeypatch, POLICY="affinity", ON_DEMAND_BONUS_MAX="0", MAX_CONCURRENCY="none")
    assert (policy_config(bounded).on_demand_bonus_max, bounded.max_concurrency) == (0, None)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("POLICY", "luck", "'luck' is unknown; expected a preset"),
        ("POLICY", "tier,tier", "named twice"),
        ("MAX_CONCURRENCY", "many", "'many'; expected a whole number, or none"),
        ("COST_ALPHA", "0.3005", "three decimals"),
        ("IDLE_TTL", "59s", "at least 1m"),
        ("RESOURCES", "cpu", "cpu=8,gpu=1"),
        ("HTTP_ALLOWED_HOSTS", "a,b c", "expected names such as scheduler.example.com"),
        ("ADMIN_TOKEN", "nineteen-characters", "at least 20 characters"),
        ("ADMIN_TOKEN", "twenty-characters-ää", "printable ASCII"),
        ("AUDIT_INTERVAL", "9s", "at least 10s, or none"),
        ("AUDIT_RETENTION", "59m", "at least 1h"),
        ("BATCH_DELAY_MAX", "2s", "at most 1s"),
        ("ADMIN_TOKEN", "twenty characters it has", "space"),
        ("AMQP_TLS_CERT_FILE", "a", "AMQP_TLS_KEY_FILE must be set together"),
        ("UI_SESSION_LIFE", "59s", "1m to 31d"),
        ("HTTP_TLS_CERT_FILE", "a", "HTTP_TLS_KEY_FILE must be set together"),
        ("HTTP_TLS_CLIENT_CA_FILE", "a", "requires HTTP_TLS_CERT_FILE"),
        ("AMQP_TLS_CA_FILE", "a", "amqps://"),
    ],
)
def test_a_mistake_names_its_variable_and_repeats_no_secret(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(monkeypatch, **{name: value})
    assert refused.value.path == (f"HASCHEDULER_{name.replace('KEY_FILE', 'CERT_FILE')}",)
    assert said in str(refused.value)
    assert name != "ADMIN_TOKEN" or value not in str(refused.value)


ELSEWHERE = "mongodb://u:not-to-be-seen@b.example/?replicaSet=b"


@pytest.mark.parametrize(
    ("uris", "said"),
    [
        ("0004", "entry 1; expected 0004=mongodb"),
        (f"0001={ELSEWHERE} 2={ELSEWHERE}", "entry 2; expected"),
        (f"0000={ELSEWHERE}", "names the shards 0000; expected 0001 to 0003, as there are 4"),
        (f"0003-0001={ELSEWHERE}", "names the shards 0003-0001; expected"),
        (f"0001-0002={ELSEWHERE} 0002={ELSEWHERE}", "names shard 0002 twice"),
    ],
)
def test_uris_of_shards_are_of_shards_that_there_are_and_are_not_repeated_in_errors(
    monkeypatch: pytest.MonkeyPatch, uris: str, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        read(monkeypatch, SHARDS="4", SHARD_MONGODB_URIS=uris)
    assert "not-to-be-seen" not in str(refused.value)


def test_each_shard_is_in_the_mongodb_of_the_first_one_or_in_that_of_its_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(monkeypatch, SHARDS="4", SHARD_MONGODB_URIS=f"0002-0003={ELSEWHERE}")
    home = settings.mongodb_uri.get_secret_value()
    assert settings.shard_uris == [home, home, ELSEWHERE, ELSEWHERE]
    assert "not-to-be-seen" not in repr(settings)


def test_a_uri_that_only_the_driver_can_judge_is_named_by_its_own_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(monkeypatch, SHARDS="2", SHARD_MONGODB_URIS="0001=mongodb+srv://u:not-to-be-seen@b.example:27017/")
    with pytest.raises(InvalidInput, match="HASCHEDULER_SHARD_MONGODB_URIS: not a MongoDB URI") as refused:
        ShardDatabases(settings)
    assert "not-to-be-seen" not in str(refused.value)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"SHARD_CANDIDATES": "1"}, "SHARD_CANDIDATES: must be 0"),
        ({"SHARD_CANDIDATES": "-1"}, "SHARD_CANDIDATES"),
        ({"SHARD_CANDIDATES": "2", "HTTP_HOST": "0.0.0.0", "AUTH": "tokens"}, "ADVERTISE_HOST: must be set with"),
        ({"PEER_TLS_CA_FILE": "ca.pem"}, "PEER_TLS_CA_FILE: requires HTTP_TLS_CERT_FILE"),
    ],
)
def test_candidates_of_shards_are_two_or_more_that_can_ask_each_other(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(monkeypatch, **variables)
    assert read(monkeypatch, SHARD_CANDIDATES="2", HTTP_HOST="127.0.0.1", PEER_TLS_CA_FILE="").shard_candidates == 2


@pytest.mark.parametrize(
    ("host", "auth", "allowed", "demanded"),
    [
        ("127.0.0.1", "auto", "false", False),
        ("localhost", "auto", "false", False),
        ("db.example.com", "auto", "false", True),
        ("127.0.0.1", "tokens", "false", True),
        ("127.0.0.1", "none", "false", False),
        ("0.0.0.0", "auto", "false", True),
        ("0.0.0.0", "auto", "true", False),
        ("0.0.0.0", "tokens", "true", True),
        ("0.0.0.0", "none", "true", False),
        ("0.0.0.0", "none", "false", None),
    ],
)
def test_tokens_are_demanded_unless_it_is_safe_or_switched_off(
    monkeypatch: pytest.MonkeyPatch, host: str, auth: str, allowed: str, demanded: bool | None
) -> None:
    variables = {"HTTP_HOST": host, "AUTH": auth, "ALLOW_UNAUTHENTICATED": allowed}
    if demanded is None:
        with pytest.raises(InvalidInput, match=r"HASCHEDULER_HTTP_HOST: 0\.0\.0\.0 is not loopback"):
            read(monkeypatch, **variables)
    else:
        assert read(monkeypatch, **variables).tokens_demanded is demanded


def test_without_tokens_the_replica_knows_the_names_that_it_is_called_by(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(monkeypatch, HTTP_ALLOWED_HOSTS="Scheduler.corp, hascheduler", ADVERTISE_HOST="node-1")
    assert settings.own_hosts == {"scheduler.corp", "hascheduler", "node-1", "127.0.0.1"}
    auth = auth_config(settings)
    assert (auth.hosts, auth.any_address) == (settings.own_hosts, False)
    assert auth_config(read(monkeypatch, HTTP_HOST="0.0.0.0", ALLOW_UNAUTHENTICATED="true")).any_address


def test_no_dump_of_the_settings_tells_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    uris = {"MONGODB_URI": "mongodb://user:hunter2@db/", "AMQP_URL": "amqp://user:hunter2@mq/"}
    settings = read(monkeypatch, ADMIN_TOKEN="an-admin-token-of-the-settings", **uris)
    for dump in (repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert "hunter2" not in dump
        assert "an-admin-token" not in dump


# Variables that nothing reads

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "command",
    ["serve", "processor hascheduler.handlers.log", "migrate", "job list", "schedule preview --cron @daily", "dev"],
)
def test_every_command_refuses_a_misspelt_setting(command: str) -> None:
    ended = invoke(*command.split(), HASCHEDULER_LEASE_DURATON="20s")
    assert ended.status == 2
    assert ended.err == "hascheduler: HASCHEDULER_LEASE_DURATON: unknown setting; expected HASCHEDULER_LEASE_DURATION\n"
    assert not ended.out


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("HASCHEDULER_LEASE_DURATION_MS", "HASCHEDULER_LEASE_DURATION"),
        ("HASCHEDULER_MONGO_URI", "HASCHEDULER_MONGODB_URI"),
        ("hascheduler_shrad", "HASCHEDULER_SHARD"),
        ("HASCHEDULER_QQQ", "the settings in `hascheduler serve --help`"),
    ],
)
def test_the_nearest_name_is_told(given: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        require_known_variables({"PATH": "/bin", given: "8080"})
    assert str(refusal.value) == f"{given}: unknown setting; expected {expected}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HASCHEDULER_SERVICE_HOST", "10.0.0.1"),
        ("HASCHEDULER_PORT", "tcp://10.0.0.1:8080"),
        ("HASCHEDULER_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("hascheduler_shard", "default"),
        ("_HASCHEDULER_COMPLETE", "complete_bash"),
        ("MY_HASCHEDULER_THING", "1"),
    ],
)
def test_what_kubernetes_makes_of_services_passes(name: str, value: str) -> None:
    require_known_variables({name: value})


def test_every_variable_of_the_manifests_scripts_tests_and_documents_is_known() -> None:
    """So that none of them is refused where it is set, and none is explained that does not exist."""
    known = {*variables(), *(f"HASCHEDULER_{name}" for name in READ_ELSEWHERE)}
    folders = ("k8s", "kind", "scripts", "docs", "tests/system", "tests/chaos", "tests/integration", "hascheduler/demo")
    found: dict[str, Path] = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()):
        if path.suffix in (".py", ".yaml", ".md", ".sh", ".env", ""):
            text = path.read_text(encoding="utf-8", errors="ignore")
            if not re.search(r"\nStatus:.*proposed", text):  # names what there is not yet
                names = re.findall(r"\bHASCHEDULER_[A-Z_]*[A-Z]\b(?!_)", text)
                found.update(dict.fromkeys(names, path))
    examples = {"HASCHEDULER_PORT", "HASCHEDULER_SERVICE_HOST"}
    require_known_variables(dict.fromkeys(known, "1"))
    unknown = {name: path for name, path in found.items() if name not in known and name not in examples}
    assert not unknown


@pytest.mark.parametrize("command", ["serve", "processor hascheduler.handlers.log", "migrate", "check"])
def test_a_uri_that_is_none_is_refused_in_one_line_without_its_password(command: str) -> None:
    ended = invoke(*command.split(), HASCHEDULER_MONGODB_URI="mongodb://me:sEc@ret@127.0.0.1/")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith("hascheduler: HASCHEDULER_MONGODB_URI: not a MongoDB URI (InvalidURI); expected ")
    assert "ret@" not in ended.err
