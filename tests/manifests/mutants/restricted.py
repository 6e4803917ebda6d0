"""What a pod must not be allowed."""

from tests.manifests.mutants.places import Spoil, container_of, pod_of
from tests.manifests.objects import Objects
from tests.manifests.rules import Rule, restricted


def the_host_s_network(objects: Objects) -> None:
    pod_of(objects)["hostNetwork"] = True


def a_port_of_the_host(objects: Objects) -> None:
    container_of(objects)["ports"][0]["hostPort"] = 8080


def a_folder_of_the_host(objects: Objects) -> None:
    pod_of(objects)["volumes"].append({"name": "logs", "hostPath": {"path": "/var/log"}})


def runs_as_root(objects: Objects) -> None:
    pod_of(objects)["securityContext"]["runAsUser"] = 0


def an_initial_container_may_be_root(objects: Objects) -> None:
    context = pod_of(objects, "StatefulSet", "mongodb")["initContainers"][0]["securityContext"]
    context["runAsNonRoot"] = False


def seccomp_forgotten(objects: Objects) -> None:
    del pod_of(objects)["securityContext"]["seccompProfile"]


def escalation_left_to_the_default(objects: Objects) -> None:
    del container_of(objects)["securityContext"]["allowPrivilegeEscalation"]


def a_capability_added(objects: Objects) -> None:
    container_of(objects)["securityContext"]["capabilities"]["add"] = ["NET_ADMIN"]


def a_root_that_can_be_written(objects: Objects) -> None:
    container_of(objects, "StatefulSet", "rabbitmq")["securityContext"]["readOnlyRootFilesystem"] = False


def a_lenient_namespace(objects: Objects) -> None:
    objects.get("Namespace", "hascheduler")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline"


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (restricted.no_namespace_of_the_host, the_host_s_network),
    (restricted.no_namespace_of_the_host, a_port_of_the_host),
    (restricted.only_harmless_volumes, a_folder_of_the_host),
    (restricted.not_root, runs_as_root),
    (restricted.not_root, an_initial_container_may_be_root),
    (restricted.system_calls_are_filtered, seccomp_forgotten),
    (restricted.no_privilege, escalation_left_to_the_default),
    (restricted.no_privilege, a_capability_added),
    (restricted.read_only_root, a_root_that_can_be_written),
    (restricted.the_namespace_enforces_it, a_lenient_namespace),
)
