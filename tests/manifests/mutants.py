"""Mistakes in the manifests, each with the rule that must find it.

A place is an object, then the way into it; ``pod`` stands for its pods' spec, ``container`` for their first container.
"""

from collections.abc import Callable
from operator import delitem, setitem
from typing import Any

from tests.manifests.objects import Object, Objects
from tests.manifests.rules import (
    Rule,
    changes,
    commands,
    hosts,
    lifecycle,
    naming,
    network,
    pods,
    references,
    restricted,
)

Spoil = Callable[[Objects], None]

_SHORT = {"pod": ["spec", "template", "spec"], "container": ["spec", "template", "spec", "containers", "0"]}


def at(place: str, change: Callable[[Any, Any], object]) -> Spoil:
    """``change`` the mapping or list that the last word of the place is a key of."""
    named, *words = place.split()
    *way, last = [int(key) if key.isdigit() else key for word in words for key in _SHORT.get(word, [word])]

    def spoil(objects: Objects) -> None:
        here: Any = objects.get(*named.split("/"))
        for key in way:
            here = here[key]
        change(here, last)

    return spoil


def put(place: str, value: Any) -> Spoil:
    return at(place, lambda here, key: setitem(here, key, value))


def drop(place: str) -> Spoil:
    return at(place, delitem)


def add(place: str, item: Any) -> Spoil:
    return at(place, lambda here, key: here[key].append(item))


def setting(name: str, value: str) -> Spoil:
    return put(f"ConfigMap/hascheduler-settings data {name}", value)


def variable(name: str, value: str) -> Spoil:
    return add("Deployment/scheduler container env", {"name": name, "value": value})


def create(kind: str, name: str, **fields: Any) -> Spoil:
    made = {"kind": kind, "metadata": {"name": name, "namespace": "hascheduler"}, **fields}
    return lambda objects: objects.all.append(made)


def remove(kind: str, name: str) -> Spoil:
    return lambda objects: objects.all.remove(objects.get(kind, name))


def all_of(*spoils: Spoil) -> Spoil:
    def spoil(objects: Objects) -> None:
        for each in spoils:
            each(objects)

    return spoil


def keep_the_lease(rule: Object, subject: Object | None = None) -> Spoil:
    """Let the schedulers keep the lease in the cluster, with a role of that one rule."""
    return all_of(
        variable("HASCHEDULER_LEASE_STORE", "kubernetes"),
        put("Deployment/scheduler pod automountServiceAccountToken", True),
        create("Role", "scheduler", rules=[rule]),
        create(
            "RoleBinding",
            "scheduler",
            roleRef={"kind": "Role", "name": "scheduler"},
            subjects=[subject or {"kind": "ServiceAccount", "name": "scheduler"}],
        ),
    )


def a_file_that_the_configuration_names(objects: Objects) -> None:
    data = objects.get("ConfigMap", "rabbitmq-config")["data"]
    data["rabbitmq.conf"] = data["rabbitmq.conf"].replace("definitions.json", "users.json")


SCHEDULER, PROCESSOR, BOOTSTRAP = "Deployment/scheduler", "Deployment/processor", "Deployment/bootstrap"
MONGODB, RABBITMQ = "StatefulSet/mongodb", "StatefulSet/rabbitmq"
MEMBERS = f"{BOOTSTRAP} pod initContainers 0 env 0 value"
COMPONENT, VERSION = "app.kubernetes.io/component", "app.kubernetes.io/version"
LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]}
NO_SERVICE = {"name": "scheduler", "port": {"number": 8080}}
TOKEN_AS_A_VARIABLE = {
    "name": "HASCHEDULER_ADMIN_TOKEN",
    "valueFrom": {"secretKeyRef": {"name": "hascheduler-scheduler", "key": "admin-token"}},
}

PLANTED: dict[Rule, dict[str, Spoil]] = {
    restricted.no_namespace_of_the_host: {
        "the host's network": put(f"{SCHEDULER} pod hostNetwork", True),
        "a port of the host": put(f"{SCHEDULER} container ports 0 hostPort", 8080),
    },
    restricted.only_harmless_volumes: {
        "a folder of the host": add(f"{SCHEDULER} pod volumes", {"name": "logs", "hostPath": {"path": "/var/log"}}),
    },
    restricted.not_root: {
        "runs as root": put(f"{SCHEDULER} pod securityContext runAsUser", 0),
        "an initial container may be root": put(f"{MONGODB} pod initContainers 0 securityContext runAsNonRoot", False),
    },
    restricted.system_calls_are_filtered: {
        "seccomp forgotten": drop(f"{SCHEDULER} pod securityContext seccompProfile"),
    },
    restricted.no_privilege: {
        "escalation left to the default": drop(f"{SCHEDULER} container securityContext allowPrivilegeEscalation"),
        "a capability added": put(f"{SCHEDULER} container securityContext capabilities add", ["NET_ADMIN"]),
    },
    restricted.read_only_root: {
        "a root that can be written": put(f"{RABBITMQ} container securityContext readOnlyRootFilesystem", False),
    },
    restricted.the_namespace_enforces_it: {
        "a lenient namespace": put(
            "Namespace/hascheduler metadata labels pod-security.kubernetes.io/enforce", "baseline"
        ),
    },
    pods.images_are_exact_and_local: {
        "the latest image": put(f"{SCHEDULER} container image", "hascheduler:latest"),
        "an image without a tag": put(f"{BOOTSTRAP} pod initContainers 0 image", "hascheduler"),
        "always from the registry": put(f"{MONGODB} container imagePullPolicy", "Always"),
    },
    pods.resources_are_said: {
        "no memory limit": drop(f"{SCHEDULER} container resources limits memory"),
        "requests more than its limit": put(f"{SCHEDULER} container resources requests memory", "2Gi"),
    },
    pods.probes_are_there: {
        "no startup probe": drop(f"{PROCESSOR} container startupProbe"),
        "an impatient probe": drop(f"{SCHEDULER} container livenessProbe timeoutSeconds"),
    },
    pods.probes_ask_what_answers: {
        "a port that is not there": put(f"{RABBITMQ} container readinessProbe tcpSocket port", "management"),
        "leadership as readiness": put(f"{SCHEDULER} container readinessProbe httpGet path", "/leaderz"),
    },
    pods.nobody_speaks_to_the_api_server: {
        "a token of the API server": drop(f"{SCHEDULER} pod automountServiceAccountToken"),
        "the default account": drop(f"{SCHEDULER} pod serviceAccountName"),
        "a role that nothing uses": create("Role", "leases", rules=[]),
        "a lease without a token": variable("HASCHEDULER_LEASE_STORE", "kubernetes"),
        "all leases for the lease": keep_the_lease({**LEASES, "verbs": ["get"]}),
        "secrets besides the lease": keep_the_lease(SECRETS),
        "rights for everybody": keep_the_lease(
            {**LEASES, "verbs": ["create"]}, {"kind": "Group", "name": "system:authenticated"}
        ),
    },
    pods.no_variables_from_services: {
        "variables of services": drop(f"{RABBITMQ} pod enableServiceLinks"),
    },
    pods.replicas_are_spread: {
        "over zones alone": put(
            f"{SCHEDULER} pod topologySpreadConstraints 0 topologyKey", "topology.kubernetes.io/zone"
        ),
        "the last rollout counts": drop(f"{PROCESSOR} pod topologySpreadConstraints 0 matchLabelKeys"),
        "not at all": drop(f"{SCHEDULER} pod topologySpreadConstraints"),
        "others are counted": put(
            f"{SCHEDULER} pod topologySpreadConstraints 0 labelSelector matchLabels {COMPONENT}", "processor"
        ),
    },
    pods.one_node_is_enough_for_development: {
        "demands three nodes": put(f"{SCHEDULER} pod topologySpreadConstraints 0 whenUnsatisfiable", "DoNotSchedule"),
        "requests a whole node": put(f"{SCHEDULER} container resources requests cpu", "500m"),
    },
    references.configuration_is_there: {
        "a config map that is not there": put(
            f"{SCHEDULER} container envFrom 0 configMapRef name", "hascheduler-settings"
        ),
        "a key that the secret lacks": put(f"{BOOTSTRAP} pod volumes 1 secret items 0 key", "uri"),
        "a secret as a variable": add(f"{SCHEDULER} container env", TOKEN_AS_A_VARIABLE),
    },
    references.volumes_are_there_and_used: {
        "a mount without a volume": add(
            f"{SCHEDULER} container volumeMounts", {"name": "cache", "mountPath": "/cache"}
        ),
        "a volume that nothing mounts": add(f"{SCHEDULER} pod volumes", {"name": "cache", "emptyDir": {}}),
    },
    references.files_that_are_named_are_mounted: {
        "a file of another name": put(f"{SCHEDULER} container volumeMounts 0 mountPath", "/run/secrets/scheduler"),
        "a file that the configuration names": a_file_that_the_configuration_names,
    },
    references.services_reach_ports: {
        "a service of nobody": put(f"Service/hascheduler spec selector {COMPONENT}", "api"),
        "a service to no port": put("Service/rabbitmq spec ports 0 targetPort", "amqps"),
    },
    references.routes_lead_to_services: {
        "a route to no service": create(
            "Ingress", "api", spec={"rules": [{"http": {"paths": [{"backend": {"service": NO_SERVICE}}]}}]}
        ),
        "a route over HTTP/2": all_of(
            put("Service/hascheduler spec ports 0 appProtocol", "kubernetes.io/h2c"),
            create("HTTPRoute", "api", spec={"rules": [{"backendRefs": [{"name": "hascheduler", "port": 8080}]}]}),
        ),
    },
    references.owners_are_there: {
        "a stateful set without its service": put(f"{MONGODB} spec serviceName", "mongo"),
        "a budget of nobody": put("PodDisruptionBudget/mongodb spec selector matchLabels", {"app": "mongodb"}),
        "an autoscaler against a number": create(
            "HorizontalPodAutoscaler", "processor", spec={"scaleTargetRef": {"name": "processor"}}
        ),
    },
    references.secrets_are_for_development_or_outside: {
        "a true password": put("Secret/hascheduler-mongodb data admin-password", "aHVudGVyMg=="),
        "a password in a variable": variable("HASCHEDULER_AMQP_URL", "amqp://scheduler:hunter2@rabbitmq:5672/"),
        "a password in an argument": add(
            f"{SCHEDULER} container args", "--amqp-url=amqp://scheduler:hunter2@rabbitmq:5672/"
        ),
    },
    commands.variables_are_known: {
        "a misspelt setting": setting("HASCHEDULER_LOGLEVEL", "info"),
        "a misspelt variable of OpenTelemetry": setting("OTEL_EXPORTER_OTLP_ENDPIONT", "http://collector:4318"),
        "a reference to nothing": add(f"{PROCESSOR} container args", "--name=$(HOSTNAME)"),
    },
    commands.settings_are_accepted: {
        "a value that is refused": setting("HASCHEDULER_DRAIN_GRACE", "twenty seconds"),
        "settings that contradict": setting("HASCHEDULER_LEASE_DURATION", "5s"),
    },
    commands.arguments_are_understood: {
        "an unknown command": put(f"{SCHEDULER} container args", ["server"]),
        "an unknown option": add(f"{BOOTSTRAP} pod initContainers 0 args", "--force"),
        "a command instead of the entry point": put(f"{SCHEDULER} container command", ["python", "-m", "hascheduler"]),
    },
    commands.ports_are_the_settings: {
        "an API that only the pod reaches": variable("HASCHEDULER_HTTP_HOST", "127.0.0.1"),
        "another port than the process has": put(f"{SCHEDULER} container ports 1 containerPort", 7071),
    },
    hosts.hosts_are_there: {
        "a member that is not there": put(MEMBERS, "mongodb-0.mongodb:27017,mongodb-1.mongodb:27017"),
        "a service that has no names of pods": drop("Service/mongodb spec clusterIP"),
        "a collector of nobody": setting("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
    },
    hosts.no_namespace_is_written_out: {
        "members of one namespace": put(MEMBERS, "mongodb-0.mongodb.hascheduler.svc:27017"),
        "a collector of one domain": setting(
            "OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel-collector.monitoring.svc.cluster.local:4318"
        ),
        "a query of one namespace": create(
            "ScaledObject",
            "processor",
            spec={"triggers": [{"metadata": {"query": 'sum(hascheduler_definition_jobs{namespace="hascheduler"})'}}]},
        ),
    },
    network.everything_is_denied_first: {
        "denies nothing": remove("NetworkPolicy", "default-deny"),
        "denies only what comes in": put("NetworkPolicy/default-deny spec policyTypes", ["Ingress"]),
    },
    lifecycle.graces_suffice: {
        "killed before the lease is given back": put(f"{SCHEDULER} pod terminationGracePeriodSeconds", 10),
        "killed while jobs end": setting("HASCHEDULER_DRAIN_GRACE", "5m"),
        "told to end at once": drop(f"{SCHEDULER} container lifecycle"),
    },
    lifecycle.waiting_at_the_start_is_no_failure: {
        "the rollout fails first": drop(f"{SCHEDULER} spec progressDeadlineSeconds"),
    },
    lifecycle.updates_leave_two_thirds: {
        "all at once": put(f"{SCHEDULER} spec strategy", {"type": "Recreate"}),
        "two of three at once": put(f"{SCHEDULER} spec strategy rollingUpdate maxUnavailable", 2),
        "a budget that lets all go": put("PodDisruptionBudget/scheduler spec maxUnavailable", "100%"),
    },
    lifecycle.who_must_not_all_be_away_has_a_budget: {
        "no budget": remove("PodDisruptionBudget", "scheduler"),
        "no budget for processors": remove("PodDisruptionBudget", "processor"),
    },
    lifecycle.each_shard_has_a_processor: {
        "more shards than two processors serve": setting("HASCHEDULER_SHARDS", "9"),
        "an autoscaler that leaves one": create("HorizontalPodAutoscaler", "processor", spec={"minReplicas": 1}),
    },
    changes.selectors_never_change: {
        "a version in the selector": all_of(
            put(f"{SCHEDULER} spec selector matchLabels {VERSION}", "0.2.0"),
            put(f"{SCHEDULER} spec template metadata labels {VERSION}", "0.2.0"),
        ),
    },
    changes.selectors_are_disjoint: {
        "a selector of others too": drop(f"{SCHEDULER} spec selector matchLabels {COMPONENT}"),
    },
    changes.nothing_is_a_job: {"a job": create("Job", "bootstrap")},
    changes.changed_configuration_rolls_pods: {
        "settings under a fixed name": put("ConfigMap/hascheduler-settings metadata name", "hascheduler-settings"),
    },
    changes.claims_are_plain: {
        "a class of one provider": put(f"{MONGODB} spec volumeClaimTemplates 0 spec storageClassName", "gp3"),
    },
    naming.names_are_valid: {
        "a name with an underscore": put("Service/hascheduler metadata name", "ha_scheduler"),
        "a long port name": put(f"{SCHEDULER} container ports 0 name", "the-port-of-the-api"),
        "a port twice": add(f"{SCHEDULER} container ports", {"name": "metrics", "containerPort": 9090}),
    },
    naming.all_is_in_one_namespace: {
        "another namespace": put("Service/rabbitmq metadata namespace", "default"),
        "the namespace last": lambda objects: objects.all.append(objects.all.pop(0)),
        "rights for an account of another namespace": create(
            "RoleBinding", "scheduler", subjects=[{"kind": "ServiceAccount", "name": "scheduler", "namespace": "jobs"}]
        ),
    },
}
"""By the rule that must find them."""
