"""Roles and their powers; tokens and their stored form."""

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.token import Power, Role, digest_of
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.noun import document_of, read_document
from hascheduler.schema.token import Token
from tests.factories import NOW, make_token


@pytest.mark.parametrize(
    ("role", "may"),
    [
        (Role.VIEWER, {"read"}),
        (Role.SUBMITTER, {"read", "submit"}),
        (Role.OPERATOR, {"read", "submit", "operate"}),
        (Role.ADMIN, {"read", "submit", "operate", "administer", "work"}),
        (Role.WORKER, {"work"}),
    ],
)
def test_each_role_has_these_powers(role: Role, may: set[str]) -> None:
    assert {power.value for power in Power if role.may(power)} == may


@pytest.mark.parametrize(
    ("expires_at_ms", "now", "expired"),
    [(None, NOW, False), (NOW + 1, NOW, False), (NOW, NOW, True), (NOW - 1, NOW, True)],
)
def test_a_token_expires_at_its_instant(expires_at_ms: int | None, now: int, expired: bool) -> None:
    token = make_token(expires_at_ms=expires_at_ms)
    assert token.has_expired(WallMs(now)) is expired


def test_the_digest_is_sha_256_of_the_secret() -> None:
    # By `printf %s hsk_x | sha256sum`.
    assert digest_of("hsk_x") == "8b7f7f07b3e51ef1646edfefd31dcf8e20b06bac10f292c57fcffbd1476c6aa6"


@pytest.mark.parametrize("role", ["root", "", None, ["admin"], {"$gt": ""}, "ADMIN", 1])
def test_an_unknown_role_grants_nothing(role: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_document(Token, "digest", {**document_of(make_token()), "role": role})
    assert refused.value.path == ("role",)
