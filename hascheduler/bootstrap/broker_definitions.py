"""RabbitMQ's users and what each may do, as the ``definitions.json`` that the broker reads at its start.

A permission is three patterns of names: what the user may declare and delete, write to, and read from. To bind a queue
takes write on it and read on the exchange. A user that may write to the default exchange reaches any queue by its name;
messages can be parked only through it, and the compare-and-set on the job refuses a forged one.
"""

import hashlib
import re
from base64 import b64encode
from typing import Any

from hascheduler.bootstrap.secret_values import SecretValues
from hascheduler.rabbitmq.topology import DISPATCH_EXCHANGE, PARKED_QUEUE, queue_name

SCHEDULER_USER = "scheduler"
PROCESSOR_USER = "processor"
VIRTUAL_HOST = "/"
EVENTS_EXCHANGE_DEFAULT = "hascheduler.events"
_DEFAULT_EXCHANGE = "amq.default"
"""What the broker's permissions call the exchange without a name."""
_NOTHING = "^$"


def broker_definitions(values: SecretValues, events_exchange: str) -> dict[str, Any]:
    """The whole document; ``events_exchange`` may be empty where no events are published."""
    return {
        "vhosts": [{"name": VIRTUAL_HOST}],
        "users": [
            _user(SCHEDULER_USER, values.amqp_scheduler, values.amqp_scheduler_salt),
            _user(PROCESSOR_USER, values.amqp_processor, values.amqp_processor_salt),
        ],
        "permissions": [_scheduler_permission(events_exchange), _processor_permission()],
        "topic_permissions": [],
        "parameters": [],
        "policies": [],
        "exchanges": [],
        "queues": [],
        "bindings": [],
    }


def _scheduler_permission(events_exchange: str) -> dict[str, str]:
    """It declares its exchanges and publishes to them; it reads nothing and has no queue."""
    exchanges = _names(DISPATCH_EXCHANGE, *([events_exchange] if events_exchange else []))
    return _permission(SCHEDULER_USER, configure=exchanges, write=exchanges, read=_NOTHING)


def _processor_permission() -> dict[str, str]:
    """Its queue, whatever its id; the exchange that it binds it to; and the queue where it parks messages."""
    queues = re.escape(queue_name("")) + ".+"
    return _permission(
        PROCESSOR_USER,
        configure=_any(re.escape(DISPATCH_EXCHANGE), re.escape(PARKED_QUEUE), queues),
        write=_any(re.escape(_DEFAULT_EXCHANGE), queues),
        read=_any(re.escape(DISPATCH_EXCHANGE), queues),
    )


def _permission(user: str, *, configure: str, write: str, read: str) -> dict[str, str]:
    return {"user": user, "vhost": VIRTUAL_HOST, "configure": configure, "write": write, "read": read}


def _names(*names: str) -> str:
    return _any(*(re.escape(name) for name in names))


def _any(*patterns: str) -> str:
    """Anchored: the broker takes a pattern that is found anywhere in a name."""
    return f"^({'|'.join(patterns)})$"


def _user(name: str, password: str, salt: bytes) -> dict[str, Any]:
    return {
        "name": name,
        "password_hash": b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode(),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": [],
    }
