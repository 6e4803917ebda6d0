"""Passwords and keys: fresh ones for production, and well-known ones that say what they are for."""

import hashlib
import secrets
from base64 import b64encode
from dataclasses import dataclass

from hascheduler.model.token import PUBLISHED_PREFIX, SECRET_PREFIX

PUBLISHED_KEY = "DevelopmentOnlyKeyThatEverybodyKnows"
_PASSWORD_BYTES = 32
_KEY_BYTES = 756
"""In base64 the 1,008 characters that MongoDB's manual makes a key of; it takes up to 1,024."""
_SALT_BYTES = 4


@dataclass(frozen=True, slots=True)
class SecretValues:
    """``mongodb_…`` and ``amqp_…`` are passwords, all of characters that need no escape in a URI."""

    keyfile: str
    mongodb_admin: str
    mongodb_scheduler: str
    mongodb_processor: str
    amqp_scheduler: str
    amqp_processor: str
    amqp_scheduler_salt: bytes
    amqp_processor_salt: bytes
    admin_token: str


def fresh_values() -> SecretValues:
    """Fresh random values."""
    return SecretValues(
        keyfile=b64encode(secrets.token_bytes(_KEY_BYTES)).decode(),
        mongodb_admin=_password(),
        mongodb_scheduler=_password(),
        mongodb_processor=_password(),
        amqp_scheduler=_password(),
        amqp_processor=_password(),
        amqp_scheduler_salt=secrets.token_bytes(_SALT_BYTES),
        amqp_processor_salt=secrets.token_bytes(_SALT_BYTES),
        admin_token=SECRET_PREFIX + _password(),
    )


def development_values() -> SecretValues:
    """The same each time, so that they can stand in a repository; each value says that it is no secret."""
    return SecretValues(
        keyfile=PUBLISHED_KEY,
        mongodb_admin=f"{PUBLISHED_PREFIX}mongodb-admin",
        mongodb_scheduler=f"{PUBLISHED_PREFIX}mongodb-scheduler",
        mongodb_processor=f"{PUBLISHED_PREFIX}mongodb-processor",
        amqp_scheduler=f"{PUBLISHED_PREFIX}rabbitmq-scheduler",
        amqp_processor=f"{PUBLISHED_PREFIX}rabbitmq-processor",
        amqp_scheduler_salt=_known_salt("scheduler"),
        amqp_processor_salt=_known_salt("processor"),
        admin_token=f"{PUBLISHED_PREFIX}admin-token",
    )


def _password() -> str:
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def _known_salt(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()[:_SALT_BYTES]
