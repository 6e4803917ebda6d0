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

from pydantic import AliasGenerator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
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
PUBLISHED = "is published in the repository, so it is no secret"
INSTEAD_OF_PUBLISHED = (
    f"your own secret (k8s/make-secrets makes them), or, on a laptop only, {PREFIX}DEVELOPMENT_SECRETS=allowed"
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


def variable(field: str) -> str:
    """Return the environment variable that sets the field."""
    return PREFIX + field.removesuffix("_ms").upper()


def _written(default: str) -> Any:
    """Return the field with that default, which is read like the text of a variable."""
    return Field(default=default)


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
_STATED_DEFAULT = re.compile(r" \[([^\[\]]*)\]\Z")
"""The default at the end of a description, if it is not the value of the field."""
_SHARD_SPAN = re.compile(r"([0-9]{4})(?:-([0-9]{4}))?", re.ASCII)
_HOST_NAME = re.compile(r"[a-z0-9._-]{1,253}", re.ASCII)
Milliseconds = Annotated[int, BeforeValidator(_milliseconds)]
Unbounded = Annotated[int | None, BeforeValidator(_unbounded)]
MillisecondsOrNone = Annotated[int | None, BeforeValidator(_milliseconds_or_none)]


class Settings(BaseSettings):
    """All settings, frozen; built by `read_settings`, which turns every mistake into one readable line."""

    model_config = SettingsConfigDict(
        alias_generator=AliasGenerator(validation_alias=variable),
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    mongodb_uri: SecretStr = SecretStr("mongodb://127.0.0.1:27017/?replicaSet=rs0")
    """MongoDB URI; it must be a replica set"""
    database: str = Field(default="hascheduler", pattern=r"^[A-Za-z0-9_-]{1,38}$")
    """MongoDB database"""
    transport: Literal["rabbitmq", "mongo"] = "rabbitmq"
    """how jobs reach processors: rabbitmq or mongo"""
    transport_fallback: Literal["none", "mongo"] = "none"
    """how jobs reach processors while RabbitMQ is down: not at all (none) or by polling MongoDB (mongo); the same for
    replicas and processors"""
    amqp_url: SecretStr = SecretStr("amqp://guest:guest@127.0.0.1:5672/")
    """RabbitMQ URL [amqp://…@127.0.0.1:5672/]"""
    events_exchange: str = Field(default="", pattern=r"^[A-Za-z0-9._:-]{0,127}$")
    """topic exchange on RabbitMQ to which the leader publishes job events"""
    shard: str = Field(default="default", pattern=r"^[a-z0-9-]{1,32}$")
    """name of the shard; with several, of the first; for a processor, of the one it serves"""
    shards: int = Field(default=1, ge=1, le=SHARDS_MAX)
    """number of shards, each with its own database and leader; the same for replicas and processors, and fixed for the
    life of the deployment"""
    shard_candidates: int = Field(default=0, ge=0, le=SHARDS_MAX)
    """how many replicas host each shard after the first, which all replicas host: 2 or more; 0: all"""
    shard_mongodb_uris: SecretStr = SecretStr("")
    """MongoDB URIs of shards that are not on the first shard's MongoDB, as 0004=URI or 0004-0007=URI, separated by
    spaces; the same for replicas and processors"""

    http_host: str = "127.0.0.1"
    """address the API listens on"""
    http_port: int = Field(default=8080, ge=0, le=65535)
    """port the API listens on; 0: any free port"""
    auth: Literal["auto", "tokens", "none"] = "auto"
    """API authentication: tokens or none; auto: none on a loopback address, otherwise tokens"""
    admin_token: SecretStr = Field(
        default=SecretStr(""),
        description="token with all permissions, to create the others with; at least "
        f"{ADMIN_TOKEN_LENGTH_MIN} characters",
    )
    development_secrets: Literal["refused", "allowed"] = "refused"
    """allowed: accept the passwords and the token published in the repository, for a cluster on a laptop"""
    allow_unauthenticated: bool = False
    """allow an API without tokens on an address that is not loopback"""
    http_allowed_hosts: Annotated[str, BeforeValidator(_host_names)] = ""
    """if no tokens are required: more host names, separated by commas, by which clients may reach the API, besides
    localhost, HTTP_HOST and ADVERTISE_HOST"""
    replicas_expected: int = Field(default=0, ge=0, le=100)
    """how many replicas should be alive, for the verdict on the cluster; 0: the most that were alive within the last
    hour"""
    ui: bool = True
    """serve the dashboard at /ui; false: /ui answers 404"""
    ui_name: str = Field(default="", pattern=r"^[A-Za-z0-9 ._-]{0,32}$")
    """name of this deployment in the dashboard, such as staging"""
    ui_session_life_ms: Milliseconds = _written("12h")
    """how long a login to the dashboard lasts"""
    ui_read_only: bool = False
    """make the dashboard read-only, whatever the role of the token"""
    ui_payloads: Literal["on_request", "never"] = "on_request"
    """when the dashboard shows payloads, results and tracebacks: on_request or never"""
    audit_retention_ms: Milliseconds = _written("90d")
    """how long audit log records are kept"""
    audit_log_max: int = Field(default=500_000, ge=1_000, le=100_000_000)
    """how many audit log records are kept, the newest, each of at most 5 kB"""
    audit_interval_ms: MillisecondsOrNone = _written("10m")
    """how often the leader checks the database for broken invariants; none: never"""
    http_tls_cert_file: str = ""
    """PEM certificate chain of the API, which then speaks HTTPS; a changed file is reloaded"""
    http_tls_key_file: str = ""
    """PEM key of the API's certificate"""
    http_tls_client_ca_file: str = ""
    """PEM authorities that must have signed the client's certificate"""
    peer_tls_ca_file: str = ""
    """PEM authorities for calls between replicas over HTTPS [the system's]"""
    peer_tls_name: str = ""
    """host name to expect in other replicas' certificates [their address]"""
    mongodb_tls_ca_file: str = ""
    """PEM authorities that sign MongoDB's certificate"""
    mongodb_tls_cert_file: str = ""
    """PEM client certificate and key for MongoDB"""
    amqp_tls_ca_file: str = ""
    """PEM authorities that sign RabbitMQ's certificate"""
    amqp_tls_cert_file: str = ""
    """PEM client certificate for RabbitMQ"""
    amqp_tls_key_file: str = ""
    """PEM key of the RabbitMQ client certificate"""
    liveness_host: str = "127.0.0.1"
    """address of the liveness socket by which replicas watch this process"""
    liveness_port: int = Field(default=0, ge=0, le=65535)
    """port of the liveness socket; 0: any free port"""
    health_host: str = "127.0.0.1"
    """address for probes and metrics"""
    health_port: Unbounded = Field(default=None, ge=0, le=65535)
    """port for probes and metrics, over HTTP without tokens: /livez, /readyz, /metrics and, on replicas, /leaderz; 0:
    any free port"""
    advertise_host: str = ""
    """host by which other processes reach this one [liveness host]"""

    replica_id: str = Field(default_factory=socket.gethostname, pattern=r"^[A-Za-z0-9._-]{1,128}$")
    """unique name of this replica [host name]"""
    lease_store: Literal["mongodb", "kubernetes"] = "mongodb"
    """where the leader's lease is stored: mongodb, or kubernetes for a Lease object in this cluster"""
    lease_namespace: str = Field(default="", pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$")
    """namespace of the Lease object [the pod's]"""
    lease_name: str = Field(default="", pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$")
    """name of the Lease object, unique for each shard [hascheduler-<shard>]"""
    service_account_dir: str = "/var/run/secrets/kubernetes.io/serviceaccount"
    """directory of the files token, ca.crt and namespace for the Kubernetes API [where pods have them]"""
    lease_duration_ms: Milliseconds = _written("10s")
    """how long after its last renewal a lease expires"""
    renew_deadline_ms: Milliseconds = _written("6s")
    """how long after its last renewal a leader stops deciding"""
    retry_period_ms: Milliseconds = _written("1s")
    """how often the lease is renewed, or tried by followers"""
    standstill_after_ms: Milliseconds = _written("2s")
    """how long a leader may write nothing before others check its process, and take over early if it does not answer;
    0: never"""
    batch_delay_max_ms: Milliseconds = _written("20ms")
    """how long a busy leader may wait to batch changes; less starts jobs sooner and costs more CPU; 0: it never
    waits"""
    rebalance_after_ms: Milliseconds = _written("30s")
    """with several shards: how long a replica must be ready before it takes over shards that it should lead; 0:
    never"""
    clock_skew_max_ms: Milliseconds = _written("30s")
    """how far a replica's clock may differ from MongoDB's and still be used"""
    heartbeat_interval_ms: Milliseconds = _written("1s")
    """how often a processor sends a heartbeat"""
    heartbeat_timeout_ms: Milliseconds = _written("5s")
    """how long after its last heartbeat a processor counts as dead"""
    start_timeout_ms: Milliseconds = _written("5s")
    """how long after its dispatch a job that has not started is sent again"""
    startup_patience_ms: Annotated[int, BeforeValidator(_patience)] = _written(_AUTO)
    """how long a starting process waits for MongoDB to accept it; auto: 1m under a supervisor (Kubernetes, a container,
    systemd), otherwise one try"""
    job_retention_ms: Milliseconds = _written("7d")
    """how long finished jobs are kept"""
    journal_retention_ms: Milliseconds = _written("24h")
    """how long journal entries are kept"""

    policy: Annotated[str, _checked(criteria)] = Field(
        default=DEFAULT_PRESET,
        description=f"order of jobs: {', '.join(PRESETS)}, or a list of {', '.join(Criterion)}, separated by commas",
    )
    max_pending: Unbounded = Field(default=1_000_000, ge=1, le=100_000_000)
    """how many jobs may wait in a shard before more are refused with Retry-After; none: no limit"""
    max_dependencies: Unbounded = Field(default=1_000_000, ge=1, le=100_000_000)
    """how many dependencies on jobs or batches a shard's jobs may have in all before more are refused with Retry-After;
    none: no limit"""
    tenant_schedules_max: Unbounded = Field(default=10_000, ge=1, le=10_000_000)
    """how many schedules a tenant's tokens may create, unless the tenant has max_schedules; none: no limit"""
    least_interval_ms: Milliseconds = _written("1s")
    """shortest interval between fires of a schedule created with a tenant's token"""
    token_processors_max: int = Field(default=1_000, ge=1, le=10_000)
    """how many processors tokens of one name may register over HTTP"""
    max_concurrency: Unbounded = Field(default=None, ge=1, le=10_000_000)
    """how many jobs may run at once in all; none: no limit"""
    on_demand_bonus_max: Annotated[int | Literal["none"] | None, BeforeValidator(_whole_or_none)] = Field(
        default=None,
        description="most that waiting may add to an on-demand job's score, in milli-points; none: no limit"
        f" [{ON_DEMAND_BONUS_MAX_DEFAULT}; none with affinity]",
    )
    idle_key_start: IdleKeyStart | None = None
    """virtual time at which an idle tenant or fairness key starts again: zero, what it had consumed; min, at least the
    lowest of the others [zero with fair, otherwise min]"""
    learn_cost: bool = True
    """learn the cost of jobs from how long they run"""
    cost_alpha: Annotated[int, BeforeValidator(_thousandths)] = Field(default=300, validate_default=False)
    """weight of the newest run in a learned cost, 0 to 1 [0.3]"""
    idle_ttl_ms: Milliseconds = _written("24h")
    """how long an unused learned cost is kept"""

    slots: int = Field(default=8, ge=1, le=10_000)
    """how many jobs a processor runs at once"""
    resources: Annotated[str, _checked(parse_resources)] = ""
    """resources that a processor's jobs share besides slots, such as cpu=8,gpu=1"""
    drain_grace_ms: Milliseconds = _written("20s")
    """how long running jobs may take to end after SIGTERM"""

    tracing: Literal["none", "otlp"] = "none"
    """otlp: export spans of jobs over OTLP/HTTP, set up by OTEL_… variables"""
    log_format: Literal["auto", "console", "json"] = "auto"
    """console, json, or auto: console on a terminal"""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """lowest level that is logged"""

    @model_validator(mode="after")
    def _consistent(self) -> "Settings":
        if not self.lease_duration_ms > self.renew_deadline_ms > 1.2 * self.retry_period_ms:
            raise _wrong("LEASE_DURATION", "must exceed RENEW_DEADLINE, which must exceed 1.2 × RETRY_PERIOD")
        if self.lease_store == "kubernetes" and not self.lease_name and self.shard.endswith("-"):
            raise _wrong("LEASE_NAME", f"must be set, as hascheduler-{self.shard} is not a valid name for a Lease")
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
            raise _wrong("EVENTS_EXCHANGE", "must not begin with amq., which RabbitMQ reserves")
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
                f"{self.http_host} is not loopback and the API requires no token; set HASCHEDULER_AUTH=tokens,"
                " or HASCHEDULER_ALLOW_UNAUTHENTICATED=true only if the network itself restricts access",
            )
        token = self.admin_token.get_secret_value()
        if token and (len(token) < ADMIN_TOKEN_LENGTH_MIN or not token.isascii() or not token.isprintable()):
            raise _wrong("ADMIN_TOKEN", f"must have at least {ADMIN_TOKEN_LENGTH_MIN} characters, all printable ASCII")
        if " " in token:
            raise _wrong("ADMIN_TOKEN", "must not contain a space")

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
                raise _wrong("SHARD_MONGODB_URIS", f"names the shards {names}; expected {expected}")
            for index in range(first, last + 1):
                if index in found:
                    raise _wrong("SHARD_MONGODB_URIS", f"names shard {index:04d} twice")
                found[index] = uri
        return found

    def _demand_reachable_candidates(self) -> None:
        if self.shard_candidates == 1:
            raise _wrong("SHARD_CANDIDATES", "must be 0 (all) or at least 2, so that one is left if a replica is lost")
        if self.shard_candidates and self.http_host in _ANY_ADDRESS and not self.advertise_host:
            raise _wrong("ADVERTISE_HOST", "must be set with SHARD_CANDIDATES, as replicas call each other")
        if self.peer_tls_ca_file and not self.http_tls_cert_file:
            raise _wrong("PEER_TLS_CA_FILE", "requires HTTP_TLS_CERT_FILE")

    def _demand_whole_tls(self) -> None:
        if bool(self.http_tls_cert_file) != bool(self.http_tls_key_file):
            raise _wrong("HTTP_TLS_CERT_FILE", "and HTTP_TLS_KEY_FILE must be set together")
        if self.http_tls_client_ca_file and not self.http_tls_cert_file:
            raise _wrong("HTTP_TLS_CLIENT_CA_FILE", "requires HTTP_TLS_CERT_FILE and HTTP_TLS_KEY_FILE")
        if bool(self.amqp_tls_cert_file) != bool(self.amqp_tls_key_file):
            raise _wrong("AMQP_TLS_CERT_FILE", "and AMQP_TLS_KEY_FILE must be set together")
        is_plain = not self.amqp_url.get_secret_value().startswith("amqps:")
        if (self.amqp_tls_ca_file or self.amqp_tls_cert_file) and self.transport == "rabbitmq" and is_plain:
            raise _wrong("AMQP_TLS_CA_FILE", "and AMQP_TLS_CERT_FILE require an AMQP_URL that begins with amqps://")


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
    return [*map(variable, Settings.model_fields), *(f"{PREFIX}{secret}_FILE" for secret in SECRETS)]


def described(field: str) -> tuple[str, str]:
    """Return what the setting is for, and its default in words."""
    declared = Settings.model_fields[field]
    text = " ".join((declared.description or "").split())
    stated = _STATED_DEFAULT.search(text)
    if stated is not None:
        return text[: stated.start()], stated[1]
    default = declared.default.get_secret_value() if isinstance(declared.default, SecretStr) else declared.default
    return text, _NONE if default in (None, "") else str(default).lower() if isinstance(default, bool) else str(default)


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
