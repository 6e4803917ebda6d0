"""All settings of one process, read from the environment (``HASCHEDULER_…``) and checked once, at start.

Durations are texts such as ``"10s"`` or numbers of seconds; fields that hold one end in ``_ms``, their variables do
not (``HASCHEDULER_LEASE_DURATION`` sets ``lease_duration_ms``). Each secret can be read from a file instead:
``HASCHEDULER_MONGODB_URI_FILE`` names a file that holds the URI.
"""

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, DecimalException
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AliasChoices, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict

from hascheduler.errors import InvalidInput
from hascheduler.model.partition import SHARDS_MAX, shard_database, shard_name
from hascheduler.model.policy import (
    DEFAULT_PRESET,
    ON_DEMAND_BONUS_MAX_DEFAULT,
    PRESETS,
    Criterion,
    IdleKeyStart,
    criteria,
)
from hascheduler.model.resources import parse_resources
from hascheduler.model.token import PUBLISHED_PREFIX
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import parse_duration

PREFIX = "HASCHEDULER_"
SECRETS = ("MONGODB_URI", "SHARD_MONGODB_URIS", "AMQP_URL", "ADMIN_TOKEN")
ADMIN_TOKEN_LENGTH_MIN = 20
PUBLISHED = "stands in the repository, so everybody knows it"
INSTEAD_OF_PUBLISHED = (
    f"one of your own, as k8s/make-secrets makes them; a cluster on a laptop sets {PREFIX}DEVELOPMENT_SECRETS=allowed"
)
"""The expected value in the error for a published secret."""


def _milliseconds(value: object) -> int:
    try:
        text = float(value) if isinstance(value, str) and _is_number(value) else value
        return parse_duration(text)  # type: ignore[arg-type]  # anything else is refused there
    except InvalidInput as error:
        raise ValueError(f"{error.problem}; expected {error.expected}") from None


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _duration(variable: str, default: str, description: str) -> Any:
    return Field(
        default=default,
        validation_alias=AliasChoices(PREFIX + variable, variable.lower() + "_ms"),
        description=f"{description} [{default}]",
    )


def _checked(read: Callable[[str], object]) -> BeforeValidator:
    """Return the value as it is if ``read`` accepts its text."""

    def check(value: object) -> object:
        try:
            read(str(value))
        except InvalidInput as error:
            raise ValueError(f"{error.problem}; expected {error.expected}") from None
        return value

    return BeforeValidator(check)


def _host_names(value: object) -> object:
    for name in _listed(str(value)):
        if not _HOST_NAME.fullmatch(name):
            raise ValueError(f"{quoted(name)}; expected names such as scheduler.example.com, without ports")
    return value


def _listed(text: str) -> list[str]:
    return [name.strip().lower() for name in text.split(",") if name.strip()]


def _whole_or_none(value: object) -> object:
    if isinstance(value, str) and value != _NONE and not (value.isascii() and value.isdecimal() and len(value) < 20):
        raise ValueError(f"{quoted(value)}; expected a whole number, or {_NONE}")
    return value


def _unbounded(value: object) -> object:
    value = _whole_or_none(value)
    return None if value == _NONE else value


def _thousandths(value: object) -> int:
    """Return 300 for ``0.3``."""
    try:
        thousandths = Decimal(str(value)) * 1_000
    except DecimalException:
        thousandths = Decimal(-1)
    if not thousandths.is_finite() or not 0 <= thousandths <= 1_000 or thousandths != int(thousandths):
        raise ValueError(f"{quoted(value)}; expected 0 to 1, with at most three decimals")
    return int(thousandths)


def _milliseconds_or_none(value: object) -> int | None:
    return None if value in (None, _NONE) else _milliseconds(value)


def _patience(value: object) -> int:
    if value != _AUTO:
        return _milliseconds(value)
    return _SUPERVISED_PATIENCE_MS if is_supervised(os.environ) else _ONE_TRY_MS


def is_supervised(environment: Mapping[str, str]) -> bool:
    """Return True if a supervisor would restart this process; then whatever is missing may appear soon."""
    return os.getpid() == 1 or any(name in environment for name in _SUPERVISORS)


_SUPERVISORS = ("KUBERNETES_SERVICE_HOST", "INVOCATION_ID", PREFIX + "STARTUP_PATIENCE")
"""Variables that Kubernetes and systemd set, and the setting that asks for patience."""
_SUPERVISED_PATIENCE_MS = 60_000
_ONE_TRY_MS = 0
_ANY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104  # no other replica can reach these
_AUTO = "auto"
_NONE = "none"
_SHARD_SPAN = re.compile(r"([0-9]{4})(?:-([0-9]{4}))?", re.ASCII)
_HOST_NAME = re.compile(r"[a-z0-9._-]{1,253}", re.ASCII)
Milliseconds = Annotated[int, BeforeValidator(_milliseconds)]
Unbounded = Annotated[int | None, BeforeValidator(_unbounded)]
MillisecondsOrNone = Annotated[int | None, BeforeValidator(_milliseconds_or_none)]


class Settings(BaseSettings):
    """All settings, frozen; built by `read_settings`, which turns every mistake into one readable line."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid", populate_by_name=True)

    mongodb_uri: SecretStr = Field(
        default=SecretStr("mongodb://127.0.0.1:27017/?replicaSet=rs0"),
        description="a replica set, as the change stream needs one [mongodb://127.0.0.1:27017/?replicaSet=rs0]",
    )
    database: str = Field(
        default="hascheduler", pattern=r"^[A-Za-z0-9_-]{1,38}$", description="its database [hascheduler]"
    )
    transport: Literal["rabbitmq", "mongo"] = Field(
        default="rabbitmq", description="how jobs reach processors: rabbitmq or mongo [rabbitmq]"
    )
    transport_fallback: Literal["none", "mongo"] = Field(
        default="none",
        description="how they do while RabbitMQ is away: not (none), or they are found in MongoDB (mongo); the same for"
        " replicas and processors [none]",
    )
    amqp_url: SecretStr = Field(
        default=SecretStr("amqp://guest:guest@127.0.0.1:5672/"), description="the broker [amqp://…@127.0.0.1:5672/]"
    )
    events_exchange: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._:-]{0,127}$",
        description="a topic exchange on the broker for the events of jobs, which the leader publishes [none]",
    )
    shard: str = Field(
        default="default",
        pattern=r"^[a-z0-9-]{1,32}$",
        description="the name of the shard; of several shards, that of the first one, or for a processor the only one"
        " that it serves [default]",
    )
    shards: int = Field(
        default=1,
        ge=1,
        le=SHARDS_MAX,
        description="how many shards the deployment has, each a database with a leader of its own; the same for"
        " replicas and processors, and as long as the deployment lives [1]",
    )
    shard_candidates: int = Field(
        default=0,
        ge=0,
        le=SHARDS_MAX,
        description="of several shards: how many replicas host each of them, 2 or more; all host the first one; 0: all"
        " host all [0]",
    )
    shard_mongodb_uris: SecretStr = Field(
        default=SecretStr(""),
        description="the MongoDB of each shard that is not in the one of the first shard, as 0004=URI or 0004-0007=URI,"
        " several separated by spaces; the same for replicas and processors [none]",
    )

    http_host: str = Field(default="127.0.0.1", description="address the API listens on [127.0.0.1]")
    http_port: int = Field(default=8080, ge=0, le=65535, description="its port; 0 takes a free one [8080]")
    auth: Literal["auto", "tokens", "none"] = Field(
        default="auto",
        description="who may ask the API: who has a token (tokens), anybody (none), or auto: anybody where it listens"
        " on loopback, else who has a token [auto]",
    )
    admin_token: SecretStr = Field(
        default=SecretStr(""),
        description=f"a token that may do everything, to make the others with; {ADMIN_TOKEN_LENGTH_MIN} characters or"
        " more [none]",
    )
    development_secrets: Literal["refused", "allowed"] = Field(
        default="refused",
        description="allowed: take the passwords and the token that stand in the repository, which everybody knows; for"
        " a cluster on a laptop [refused]",
    )
    allow_unauthenticated: bool = Field(
        default=False,
        description="ask for no tokens, unless auth is tokens, although the address is not loopback [false]",
    )
    http_allowed_hosts: Annotated[str, BeforeValidator(_host_names)] = Field(
        default="",
        description="where no token is demanded: host names, with commas, that clients reach the API by, besides"
        " localhost, HTTP_HOST and ADVERTISE_HOST [none]",
    )
    ui: bool = Field(default=True, description="serve the dashboard at /ui; false: /ui is 404 [true]")
    ui_name: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9 ._-]{0,32}$",
        description="what the dashboard calls this deployment, such as staging, on every view [none]",
    )
    ui_session_life_ms: Milliseconds = _duration(
        "UI_SESSION_LIFE", "12h", "who logged in to the dashboard with a token logs in again after so long"
    )
    ui_read_only: bool = Field(
        default=False, description="the dashboard changes nothing, whatever the role of the token [false]"
    )
    ui_payloads: Literal["on_request", "never"] = Field(
        default="on_request",
        description="whether the dashboard shows payloads, results and tracebacks: when asked to (on_request), or never"
        " [on_request]",
    )
    audit_retention_ms: Milliseconds = _duration("AUDIT_RETENTION", "90d", "who changed what is kept for so long")
    audit_log_max: int = Field(
        default=500_000,
        ge=1_000,
        le=100_000_000,
        description="of who changed what, how many records are kept: the newest, of at most 5 kB each [500000]",
    )
    audit_interval_ms: MillisecondsOrNone = _duration(
        "AUDIT_INTERVAL", "10m", "how often the leader looks for what is broken in the database; none: never"
    )
    http_tls_cert_file: str = Field(
        default="",
        description="PEM certificate chain; the API speaks HTTPS, and takes up new files while it runs [none]",
    )
    http_tls_key_file: str = Field(default="", description="its PEM key [none]")
    http_tls_client_ca_file: str = Field(
        default="", description="PEM authorities; only clients with a certificate of theirs get in [none]"
    )
    peer_tls_ca_file: str = Field(
        default="",
        description="PEM authorities that replicas trust each other's API by, if it speaks TLS [those of the machine]",
    )
    peer_tls_name: str = Field(
        default="", description="the name in the certificates of the other replicas [their own address]"
    )
    mongodb_tls_ca_file: str = Field(default="", description="PEM authorities that MongoDB is trusted by [none]")
    mongodb_tls_cert_file: str = Field(default="", description="PEM certificate and key to show to MongoDB [none]")
    amqp_tls_ca_file: str = Field(default="", description="PEM authorities that the broker is trusted by [none]")
    amqp_tls_cert_file: str = Field(default="", description="PEM certificate to show to the broker [none]")
    amqp_tls_key_file: str = Field(default="", description="its PEM key [none]")
    liveness_host: str = Field(
        default="127.0.0.1",
        description="address where replicas watch this process: the leader's, or a processor's [127.0.0.1]",
    )
    liveness_port: int = Field(default=0, ge=0, le=65535, description="its port; 0 takes a free one [0]")
    health_host: str = Field(
        default="127.0.0.1", description="address where the process answers probes and scrapes [127.0.0.1]"
    )
    health_port: Unbounded = Field(
        default=None,
        ge=0,
        le=65535,
        description="plain HTTP, no tokens: /livez /readyz /metrics, of a replica /leaderz; 0 takes a free one [none]",
    )
    advertise_host: str = Field(default="", description="the host that others reach this process by [liveness host]")

    replica_id: str = Field(
        default_factory=socket.gethostname,
        pattern=r"^[A-Za-z0-9._-]{1,128}$",
        description="this replica's name [host name]",
    )
    lease_store: Literal["mongodb", "kubernetes"] = Field(
        default="mongodb",
        description="where it is kept who leads: mongodb, or kubernetes, as a Lease of the cluster this replica runs in"
        " [mongodb]",
    )
    lease_namespace: str = Field(
        default="", pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$", description="that Lease's namespace [the pod's]"
    )
    lease_name: str = Field(
        default="",
        pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$",
        description="its name, another one for each shard [hascheduler-<shard>]",
    )
    service_account_dir: str = Field(
        default="/var/run/secrets/kubernetes.io/serviceaccount",
        description="the files token, ca.crt and namespace, to speak to the API server with [where every pod has them]",
    )
    lease_duration_ms: Milliseconds = _duration("LEASE_DURATION", "10s", "a lease not renewed for so long is free")
    renew_deadline_ms: Milliseconds = _duration("RENEW_DEADLINE", "6s", "a leader trusts a renewal for so long")
    retry_period_ms: Milliseconds = _duration("RETRY_PERIOD", "1s", "how often the lease is renewed or tried")
    standstill_after_ms: Milliseconds = _duration(
        "STANDSTILL_AFTER",
        "2s",
        "a leader that writes nothing for so long, and whose process does not answer, is followed before its lease runs"
        " out; 0: never",
    )
    batch_delay_max_ms: Milliseconds = _duration(
        "BATCH_DELAY_MAX",
        "20ms",
        "a busy leader waits for so long at most, so that what comes together is read and decided together; less: jobs"
        " start sooner, and cost more CPU; 0: it never waits",
    )
    rebalance_after_ms: Milliseconds = _duration(
        "REBALANCE_AFTER",
        "30s",
        "a replica that should lead one of several shards gets it from another once it has been ready for so long; 0:"
        " never",
    )
    clock_skew_max_ms: Milliseconds = _duration(
        "CLOCK_SKEW_MAX", "30s", "a replica's clock that is further off MongoDB's is not followed"
    )
    heartbeat_interval_ms: Milliseconds = _duration("HEARTBEAT_INTERVAL", "1s", "how often a processor shows life")
    heartbeat_timeout_ms: Milliseconds = _duration("HEARTBEAT_TIMEOUT", "5s", "a processor silent for so long is dead")
    start_timeout_ms: Milliseconds = _duration("START_TIMEOUT", "5s", "a job not started for so long is sent again")
    startup_patience_ms: Annotated[int, BeforeValidator(_patience)] = _duration(
        "STARTUP_PATIENCE",
        _AUTO,
        "at its start a process waits so long for MongoDB to answer and to know its user; auto: 1m where a supervisor"
        " started it (Kubernetes, a container, systemd), else it tells after one try",
    )
    job_retention_ms: Milliseconds = _duration("JOB_RETENTION", "7d", "finished jobs are kept for so long")
    journal_retention_ms: Milliseconds = _duration("JOURNAL_RETENTION", "24h", "journal entries are kept for so long")

    policy: Annotated[str, _checked(criteria)] = Field(
        default=DEFAULT_PRESET,
        description=f"which job goes first: {', '.join(PRESETS)}, or some of {', '.join(Criterion)}, with commas"
        f" [{DEFAULT_PRESET}]",
    )
    max_pending: Unbounded = Field(
        default=1_000_000,
        ge=1,
        le=100_000_000,
        description="how many jobs may wait in the shard; more are refused with Retry-After; none: no limit [1000000]",
    )
    max_dependencies: Unbounded = Field(
        default=1_000_000,
        ge=1,
        le=100_000_000,
        description="how many jobs and batches the jobs of the shard may wait for in all, a whole batch being one; more"
        " are refused with Retry-After; none: no limit [1000000]",
    )
    tenant_schedules_max: Unbounded = Field(
        default=10_000,
        ge=1,
        le=10_000_000,
        description="how many schedules tokens of one tenant may make for it, where the tenant itself has no"
        " max_schedules; none: no limit [10000]",
    )
    least_interval_ms: Milliseconds = _duration(
        "LEAST_INTERVAL", "1s", "tokens of one tenant make no schedule whose times are closer together"
    )
    token_processors_max: int = Field(
        default=1_000,
        ge=1,
        le=10_000,
        description="how many processors may be registered over HTTP with tokens of one name [1000]",
    )
    max_concurrency: Unbounded = Field(
        default=None, ge=1, le=10_000_000, description="how many jobs run at once in all; none: no limit [none]"
    )
    on_demand_bonus_max: Annotated[int | Literal["none"] | None, BeforeValidator(_whole_or_none)] = Field(
        default=None,
        description="the most that waiting adds to an on-demand job's score, in milli-points; none: no limit"
        f" [{ON_DEMAND_BONUS_MAX_DEFAULT}; none with affinity]",
    )
    idle_key_start: IdleKeyStart | None = Field(
        default=None,
        description="where a tenant starts that had no job, and a fairness key of it: zero, what it had consumed; min,"
        " at least where the least of the other tenants, or of its tenant's other keys, is [zero with fair, else min]",
    )
    learn_cost: bool = Field(default=True, description="learn what jobs cost from how long they take [true]")
    cost_alpha: Annotated[int, BeforeValidator(_thousandths)] = Field(
        default=300, validate_default=False, description="the weight of the newest in a learned cost, 0 to 1 [0.3]"
    )
    idle_ttl_ms: Milliseconds = _duration("IDLE_TTL", "24h", "costs that nothing has touched for so long are forgotten")

    slots: int = Field(default=8, ge=1, le=10_000, description="jobs a processor runs at once [8]")
    resources: Annotated[str, _checked(parse_resources)] = Field(
        default="", description="what a processor's jobs share besides the slots, such as cpu=8,gpu=1 [nothing]"
    )
    drain_grace_ms: Milliseconds = _duration("DRAIN_GRACE", "20s", "on SIGTERM running jobs may take so long to end")

    tracing: Literal["none", "otlp"] = Field(
        default="none", description="otlp: send spans of jobs over OTLP/HTTP, as OTEL_… variables say [none]"
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="console, json, or auto: console on a terminal [auto]"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="least level [info]")

    @model_validator(mode="after")
    def _consistent(self) -> "Settings":
        if not self.lease_duration_ms > self.renew_deadline_ms > 1.2 * self.retry_period_ms:
            raise _wrong("LEASE_DURATION", "must exceed RENEW_DEADLINE, and that 1.2 × RETRY_PERIOD")
        if self.lease_store == "kubernetes" and not self.lease_name and self.shard.endswith("-"):
            raise _wrong("LEASE_NAME", f"must be set, as hascheduler-{self.shard} is no name for a Lease")
        if self.heartbeat_timeout_ms < 3 * self.heartbeat_interval_ms:
            raise _wrong("HEARTBEAT_TIMEOUT", "must be at least 3 × HEARTBEAT_INTERVAL")
        if min(self.retry_period_ms, self.heartbeat_interval_ms) < 50:
            raise _wrong("RETRY_PERIOD", "and HEARTBEAT_INTERVAL must be at least 50ms")
        if self.job_retention_ms < 600_000 or self.journal_retention_ms < 600_000:
            # A decision may be applied again after a failover; a job deleted before that would be inserted again.
            raise _wrong("JOB_RETENTION", "and JOURNAL_RETENTION must be at least 10m")
        if self.clock_skew_max_ms < 500:
            raise _wrong("CLOCK_SKEW_MAX", "must be at least 500ms")
        if self.events_exchange.startswith("amq."):
            raise _wrong("EVENTS_EXCHANGE", "may not begin with amq., which is the broker's own")
        if not 100 <= self.least_interval_ms <= 86_400_000:
            raise _wrong("LEAST_INTERVAL", "must be 100ms to 1d")
        if self.idle_ttl_ms < 60_000:
            raise _wrong("IDLE_TTL", "must be at least 1m")
        if self.audit_interval_ms is not None and self.audit_interval_ms < 10_000:
            raise _wrong("AUDIT_INTERVAL", "must be at least 10s, or none")
        if not 60_000 <= self.ui_session_life_ms <= 2_678_400_000:
            raise _wrong("UI_SESSION_LIFE", "must be 1m to 31d")
        if self.batch_delay_max_ms > 1_000:
            raise _wrong("BATCH_DELAY_MAX", "must be at most 1s")
        if self.audit_retention_ms < 3_600_000:
            raise _wrong("AUDIT_RETENTION", "must be at least 1h")
        self._demand_reachable_candidates()
        self._uris_elsewhere()
        self._demand_safe_access()
        self._demand_own_secrets()
        self._demand_whole_tls()
        return self

    @property
    def tokens_demanded(self) -> bool:
        if self.auth == "auto":
            return not (self.listens_on_loopback or self.allow_unauthenticated)
        return self.auth == "tokens"

    @property
    def shard_names(self) -> Sequence[str]:
        """Return the names of the shards, the home's first; `shard_databases` has the same order."""
        return [shard_name(self.shard, index) for index in range(self.shards)]

    @property
    def shard_databases(self) -> Sequence[str]:
        return [shard_database(self.database, index) for index in range(self.shards)]

    @property
    def shard_uris(self) -> Sequence[str]:
        """Return the URI of the MongoDB of each shard."""
        elsewhere = self._uris_elsewhere()
        return [elsewhere.get(index, self.mongodb_uri.get_secret_value()) for index in range(self.shards)]

    @property
    def own_hosts(self) -> frozenset[str]:
        """Return the names of this replica in the settings."""
        return frozenset(_listed(f"{self.http_allowed_hosts},{self.http_host},{self.advertise_host}"))

    @property
    def listens_on_loopback(self) -> bool:
        return _is_loopback(self.http_host)

    def _demand_safe_access(self) -> None:
        if not self.tokens_demanded and not self.allow_unauthenticated and not self.listens_on_loopback:
            raise _wrong(
                "HTTP_HOST",
                f"{self.http_host} is not loopback and the API asks for no token; set HASCHEDULER_AUTH=tokens, or"
                " HASCHEDULER_ALLOW_UNAUTHENTICATED=true only where the network itself keeps strangers out",
            )
        token = self.admin_token.get_secret_value()
        if token and (len(token) < ADMIN_TOKEN_LENGTH_MIN or not token.isascii() or not token.isprintable()):
            raise _wrong("ADMIN_TOKEN", f"must have at least {ADMIN_TOKEN_LENGTH_MIN} characters, all printable ASCII")
        if " " in token:
            raise _wrong("ADMIN_TOKEN", "must not hold a space")

    def _demand_own_secrets(self) -> None:
        if self.development_secrets == "allowed":
            return
        for variable, secret in (
            ("ADMIN_TOKEN", self.admin_token.get_secret_value()),
            ("MONGODB_URI", _password(self.mongodb_uri.get_secret_value())),
            *(("SHARD_MONGODB_URIS", _password(uri)) for uri in self._uris_elsewhere().values()),
            ("AMQP_URL", _password(self.amqp_url.get_secret_value())),
        ):
            if is_published(secret):
                raise _wrong(variable, f"{PUBLISHED}; expected {INSTEAD_OF_PUBLISHED}")

    def _uris_elsewhere(self) -> Mapping[int, str]:
        """Return the URIs of the setting by shard; errors do not quote a URI, which may hold a password."""
        found: dict[int, str] = {}
        for number, entry in enumerate(self.shard_mongodb_uris.get_secret_value().split(), 1):
            names, _, uri = entry.partition("=")
            span = _SHARD_SPAN.fullmatch(names)
            if span is None or not uri.startswith(("mongodb://", "mongodb+srv://")):
                raise _wrong(
                    "SHARD_MONGODB_URIS", f"entry {number}; expected 0004=mongodb://… or 0004-0007=mongodb://…"
                )
            first, last = int(span[1]), int(span[2] or span[1])
            if not 1 <= first <= last < self.shards:
                expected = f"0001 to {self.shards - 1:04d}, as there are {self.shards}" if self.shards > 1 else "none"
                raise _wrong("SHARD_MONGODB_URIS", f"has the shards {names}; expected {expected}")
            for index in range(first, last + 1):
                if index in found:
                    raise _wrong("SHARD_MONGODB_URIS", f"has shard {index:04d} twice")
                found[index] = uri
        return found

    def _demand_reachable_candidates(self) -> None:
        if self.shard_candidates == 1:
            raise _wrong("SHARD_CANDIDATES", "must be 2 or more, so that one is left when a replica is lost; or 0: all")
        if self.shard_candidates and self.http_host in _ANY_ADDRESS and not self.advertise_host:
            raise _wrong("ADVERTISE_HOST", "must be set with SHARD_CANDIDATES, as replicas ask each other")
        if self.peer_tls_ca_file and not self.http_tls_cert_file:
            raise _wrong("PEER_TLS_CA_FILE", "is of no use without HTTP_TLS_CERT_FILE")

    def _demand_whole_tls(self) -> None:
        if bool(self.http_tls_cert_file) != bool(self.http_tls_key_file):
            raise _wrong("HTTP_TLS_CERT_FILE", "and HTTP_TLS_KEY_FILE go together")
        if self.http_tls_client_ca_file and not self.http_tls_cert_file:
            raise _wrong("HTTP_TLS_CLIENT_CA_FILE", "takes HTTP_TLS_CERT_FILE and HTTP_TLS_KEY_FILE too")
        if bool(self.amqp_tls_cert_file) != bool(self.amqp_tls_key_file):
            raise _wrong("AMQP_TLS_CERT_FILE", "and AMQP_TLS_KEY_FILE go together")
        is_plain = not self.amqp_url.get_secret_value().startswith("amqps:")
        if (self.amqp_tls_ca_file or self.amqp_tls_cert_file) and self.transport == "rabbitmq" and is_plain:
            raise _wrong("AMQP_TLS_CA_FILE", "and AMQP_TLS_CERT_FILE take an AMQP_URL that begins with amqps://")


def read_settings(**overrides: Any) -> Settings:
    """Return the environment's settings with ``overrides`` (by field name) on top; raise `InvalidInput` for errors."""
    values = {name: value for name, value in overrides.items() if value is not None}
    for secret in SECRETS:
        path = os.environ.get(f"{PREFIX}{secret}_FILE")
        if path and secret.lower() not in values:
            try:
                values[secret.lower()] = Path(path).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise InvalidInput(
                    (f"{PREFIX}{secret}_FILE",), f"{path}: {error.strerror}", "a readable file"
                ) from None
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = str(first["msg"]).removeprefix("Value error, ")
        if not first["loc"]:
            name, _, problem = problem.partition(": ")
            raise InvalidInput((name,), problem) from None
        variable = str(first["loc"][0])
        name = variable if variable.startswith(PREFIX) else PREFIX + variable.upper().removesuffix("_MS")
        raise InvalidInput((name,), problem) from None


def heartbeat_deadline_ms(settings: Settings) -> int:
    """Return after how long without a heartbeat a processor stops, before the leader gives its jobs to others."""
    return settings.heartbeat_timeout_ms - settings.heartbeat_interval_ms


def variables() -> list[str]:
    """Return the environment variables of all settings, including those for files of secrets."""
    fields = [variable(name, field) for name, field in Settings.model_fields.items()]
    return [*fields, *(f"{PREFIX}{secret}_FILE" for secret in SECRETS)]


def variable(name: str, field: FieldInfo) -> str:
    """Return the environment variable that sets the field."""
    alias = field.validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else PREFIX + name.upper()


def is_published(secret: str) -> bool:
    """Return True if it is one of the secrets in the repository."""
    return secret.startswith(PUBLISHED_PREFIX)


def _password(uri: str) -> str:
    """Return the user's password in a URI, as the server would get it; "" if there is none."""
    user, _, _ = uri.partition("://")[2].partition("/")[0].rpartition("@")
    return unquote(user.partition(":")[2])


def _wrong(variable: str, problem: str) -> ValueError:
    """Return an error about two settings; `read_settings` splits it again."""
    return ValueError(f"{PREFIX}{variable}: {problem}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
