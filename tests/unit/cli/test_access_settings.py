"""Who gets in and what is encrypted, as the environment says it: no combination is unsafe by accident."""

from pathlib import Path

import pytest

from hascheduler.assembly_api import auth_config
from hascheduler.errors import InvalidInput
from hascheduler.settings import Settings, read_settings


def read(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(f"HASCHEDULER_{name}", value)
    return read_settings()


@pytest.mark.parametrize(
    ("host", "auth", "allowed", "demanded"),
    [
        ("127.0.0.1", "auto", "false", False),
        ("::1", "auto", "false", False),
        ("localhost", "auto", "false", False),
        ("127.0.0.1", "tokens", "false", True),
        ("127.0.0.1", "none", "false", False),
        ("0.0.0.0", "auto", "false", True),
        ("db.example.com", "auto", "false", True),
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


def test_nothing_is_demanded_by_default_as_it_listens_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch).tokens_demanded is False


def test_without_tokens_the_replica_knows_the_names_that_it_is_called_by(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(monkeypatch, HTTP_ALLOWED_HOSTS="Scheduler.corp, hascheduler", ADVERTISE_HOST="node-1")
    assert settings.own_hosts == {"scheduler.corp", "hascheduler", "node-1", "127.0.0.1"}
    auth = auth_config(settings)
    assert (auth.hosts, auth.any_address) == (settings.own_hosts, False)
    assert auth_config(read(monkeypatch, HTTP_HOST="0.0.0.0", ALLOW_UNAUTHENTICATED="true")).any_address


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("HTTP_ALLOWED_HOSTS", {"HTTP_ALLOWED_HOSTS": "a,b c"}, "expected names such as scheduler.example.com"),
        ("HTTP_ALLOWED_HOSTS", {"HTTP_ALLOWED_HOSTS": "a:8080"}, "without ports"),
        ("HTTP_ALLOWED_HOSTS", {"HTTP_ALLOWED_HOSTS": "*"}, "expected names such as scheduler.example.com"),
        ("ADMIN_TOKEN", {"ADMIN_TOKEN": "nineteen-characters"}, "at least 20 characters"),
        ("ADMIN_TOKEN", {"ADMIN_TOKEN": "twenty-characters-ää"}, "printable ASCII"),
        ("ADMIN_TOKEN", {"ADMIN_TOKEN": "twenty characters it has"}, "space"),
        ("AUTH", {"AUTH": "maybe"}, "'auto', 'tokens' or 'none'"),
        ("AUDIT_RETENTION", {"AUDIT_RETENTION": "59m"}, "at least 1h"),
        ("BATCH_DELAY_MAX", {"BATCH_DELAY_MAX": "2s"}, "at most 1s"),
        ("UI_SESSION_LIFE", {"UI_SESSION_LIFE": "59s"}, "1m to 31d"),
        ("UI_SESSION_LIFE", {"UI_SESSION_LIFE": "32d"}, "1m to 31d"),
        ("UI_NAME", {"UI_NAME": "<b>prod</b>"}, "[A-Za-z0-9 ._-]"),
        ("UI_PAYLOADS", {"UI_PAYLOADS": "always"}, "on_request"),
        ("HTTP_TLS_CERT_FILE", {"HTTP_TLS_CERT_FILE": "a"}, "HTTP_TLS_KEY_FILE go together"),
        ("HTTP_TLS_CERT_FILE", {"HTTP_TLS_KEY_FILE": "a"}, "HTTP_TLS_KEY_FILE go together"),
        ("HTTP_TLS_CLIENT_CA_FILE", {"HTTP_TLS_CLIENT_CA_FILE": "a"}, "takes HTTP_TLS_CERT_FILE"),
        ("AMQP_TLS_CERT_FILE", {"AMQP_TLS_CERT_FILE": "a"}, "AMQP_TLS_KEY_FILE go together"),
        ("AMQP_TLS_CA_FILE", {"AMQP_TLS_CA_FILE": "a"}, "amqps://"),
    ],
)
def test_a_mistake_names_its_variable_and_repeats_no_secret(
    monkeypatch: pytest.MonkeyPatch, name: str, more: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(monkeypatch, **more)
    assert refused.value.path == (f"HASCHEDULER_{name}",)
    assert said in str(refused.value)
    if name == "ADMIN_TOKEN":
        assert more[name] not in str(refused.value)


def test_the_admin_token_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("an-admin-token-of-the-settings\n")
    settings = read(monkeypatch, ADMIN_TOKEN_FILE=str(file))
    assert settings.admin_token.get_secret_value() == "an-admin-token-of-the-settings"


def test_no_dump_of_the_settings_tells_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(
        monkeypatch,
        ADMIN_TOKEN="an-admin-token-of-the-settings",
        MONGODB_URI="mongodb://user:hunter2@db/",
        AMQP_URL="amqp://user:hunter2@mq/",
    )
    for dump in (repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert "hunter2" not in dump
        assert "an-admin-token" not in dump


def test_the_log_is_kept_for_ninety_days(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch).audit_retention_ms == 90 * 86_400_000
