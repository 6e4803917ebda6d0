"""The way from a Deployment to its admin token: by variable, by mounted file, whatever the Secret is called."""

import base64
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from hascheduler.bootstrap.certificates import new_authority
from hascheduler.demo.kubernetes.api_access import SecretKey, admin_token, authority, find_admin_token, speaks_https
from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.errors import CallerError, WorldError
from tests.scripted_tools import Says, put_tool

_FILE = {"name": "HASCHEDULER_ADMIN_TOKEN_FILE", "value": "/run/secrets/admin-token"}
_VARIABLE = {"name": "HASCHEDULER_ADMIN_TOKEN"}
_MOUNT = {"name": "secrets", "mountPath": "/run/secrets"}
_PLAIN = {"name": "secrets", "secret": {"secretName": "s-5b7"}}


def _deployment(env: list[Any], mounts: list[Any], volumes: list[Any]) -> dict[str, Any]:
    other = {"name": "sidecar", "env": [{"name": "HASCHEDULER_ADMIN_TOKEN", "value": "no"}]}
    container = {"name": "scheduler", "env": env, "volumeMounts": mounts}
    return {"spec": {"template": {"spec": {"containers": [other, container], "volumes": volumes}}}}


def _with_items(key: str, path: str) -> dict[str, Any]:
    return {"name": "secrets", "secret": {"secretName": "s", "items": [{"key": key, "path": path}]}}


@pytest.mark.parametrize(
    ("deployment", "found"),
    [
        (_deployment([_FILE], [_MOUNT], [_PLAIN]), SecretKey("s-5b7", "admin-token")),
        (_deployment([_FILE], [_MOUNT], [_with_items("token", "admin-token")]), SecretKey("s", "token")),
        (_deployment([_FILE], [_MOUNT], [_with_items("admin-token", "other")]), None),
        (
            _deployment(
                [_FILE], [_MOUNT], [{"name": "secrets", "projected": {"sources": [{"configMap": {"name": "c"}},
                 {"secret": {"name": "s", "items": [{"key": "k", "path": "admin-token"}]}}]}}]),
            SecretKey("s", "k"),
        ),
        (
            _deployment(
                [_FILE], [{**_MOUNT, "mountPath": "/run/secrets/admin-token", "subPath": "k"}], [_PLAIN]),
            SecretKey("s-5b7", "k"),
        ),
        (
            _deployment([{**_VARIABLE, "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}], [], []),
            SecretKey("s", "k"),
        ),
        (_deployment([{**_VARIABLE, "value": "inline"}], [], []), None),
        (_deployment([_FILE], [], []), None),
        (_deployment([], [], []), None),
    ],
)  # fmt: skip
def test_the_way_to_the_token(deployment: dict[str, Any], found: SecretKey | None) -> None:
    assert find_admin_token(deployment) == found


@pytest.mark.parametrize("deployment", [{}, {"spec": {"template": {"spec": {"containers": []}}}}, {"spec": 3}])
def test_a_deployment_that_is_not_ours_is_an_error(deployment: dict[str, Any]) -> None:
    with pytest.raises(WorldError, match="no container scheduler"):
        find_admin_token(deployment)


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (Says(err="Error from server (Forbidden): secrets is forbidden\n", status=1), "can't be read"),
        (Says(out="{}"), "holds no token as admin-token"),
        (Says(out='{"data": {"admin-token": "ä"}}'), "holds no token"),
        (Says(out='{"data": {"admin-token": 3}}'), "holds no token"),
    ],
)
async def test_a_secret_without_it_names_the_variable_that_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says, said: str
) -> None:
    put_tool(tmp_path, "kubectl", {"get secret s-5b7": says})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CallerError, match="HASCHEDULER_TOKEN") as refused:
        await admin_token(Kubectl(None, None), _deployment([_FILE], [_MOUNT], [_PLAIN]))
    assert said in str(refused.value)


async def test_the_token_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = {"data": {"admin-token": base64.b64encode(b"hsk_secret\n").decode()}}
    put_tool(tmp_path, "kubectl", {"get secret s-5b7": Says(out=json.dumps(secret))})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await admin_token(Kubectl(None, None), _deployment([_FILE], [_MOUNT], [_PLAIN])) == "hsk_secret"


_CA_FILE = {"name": "HASCHEDULER_CA_FILE", "value": "/run/secrets/ca.crt"}
_CERT_FILE = {"name": "HASCHEDULER_HTTP_TLS_CERT_FILE", "value": "/run/secrets/tls.crt"}


def test_pods_speak_https_where_they_have_a_certificate() -> None:
    assert speaks_https(_deployment([_CERT_FILE], [], []))
    assert not speaks_https(_deployment([{**_CERT_FILE, "value": ""}], [], []))
    assert not speaks_https(_deployment([_FILE], [], []))


async def test_whom_the_pods_trust_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = new_authority("test").cert
    secret = {"data": {"ca.crt": base64.b64encode(certificate.encode()).decode()}}
    put_tool(tmp_path, "kubectl", {"get secret s-5b7": Says(out=json.dumps(secret))})
    monkeypatch.setenv("PATH", str(tmp_path))
    context = await authority(Kubectl(None, None), _deployment([_CA_FILE], [_MOUNT], [_PLAIN]))
    assert context is not None
    assert context.get_ca_certs(binary_form=True) == [ssl.PEM_cert_to_DER_cert(certificate)]
    assert context.check_hostname
    assert await authority(Kubectl(None, None), _deployment([_FILE], [_MOUNT], [_PLAIN])) is None


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (Says(err="Error from server (Forbidden): secrets is forbidden\n", status=1), "can't be read"),
        (Says(out="{}"), "holds no certificate as ca.crt"),
        (Says(out='{"data": {"ca.crt": "bm9uZQ=="}}'), "holds no certificate"),
    ],
)
async def test_a_secret_without_an_authority_names_the_variable_that_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says, said: str
) -> None:
    put_tool(tmp_path, "kubectl", {"get secret s-5b7": says})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CallerError, match="HASCHEDULER_CA_FILE") as refused:
        await authority(Kubectl(None, None), _deployment([_CA_FILE], [_MOUNT], [_PLAIN]))
    assert said in str(refused.value)
