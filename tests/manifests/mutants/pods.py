"""Pods that say too little, or the wrong thing."""

from tests.manifests.mutants.places import Spoil, add_variable, container_of, pod_of
from tests.manifests.objects import Object, Objects
from tests.manifests.rules import Rule, pods


def the_latest_image(objects: Objects) -> None:
    container_of(objects)["image"] = "hascheduler:latest"


def an_image_without_a_tag(objects: Objects) -> None:
    pod_of(objects, "Deployment", "bootstrap")["initContainers"][0]["image"] = "hascheduler"


def always_from_the_registry(objects: Objects) -> None:
    container_of(objects, "StatefulSet", "mongodb")["imagePullPolicy"] = "Always"


def no_memory_limit(objects: Objects) -> None:
    del container_of(objects)["resources"]["limits"]["memory"]


def requests_more_than_its_limit(objects: Objects) -> None:
    container_of(objects)["resources"]["requests"]["memory"] = "2Gi"


def no_startup_probe(objects: Objects) -> None:
    del container_of(objects, name="processor")["startupProbe"]


def an_impatient_probe(objects: Objects) -> None:
    del container_of(objects)["livenessProbe"]["timeoutSeconds"]


def a_probe_of_a_port_that_is_not_there(objects: Objects) -> None:
    container_of(objects, "StatefulSet", "rabbitmq")["readinessProbe"]["tcpSocket"]["port"] = "management"


def leadership_as_readiness(objects: Objects) -> None:
    container_of(objects)["readinessProbe"]["httpGet"]["path"] = "/leaderz"


def a_token_of_the_api_server(objects: Objects) -> None:
    del pod_of(objects)["automountServiceAccountToken"]


def the_default_account(objects: Objects) -> None:
    del pod_of(objects)["serviceAccountName"]


def a_role_that_nothing_uses(objects: Objects) -> None:
    objects.all.append({"kind": "Role", "metadata": {"name": "leases", "namespace": "hascheduler"}, "rules": []})


def a_lease_without_a_token(objects: Objects) -> None:
    add_variable(objects, "HASCHEDULER_LEASE_STORE", "kubernetes")


def all_leases_for_the_lease(objects: Objects) -> None:
    _keep_the_lease(objects, {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]})


def secrets_besides_the_lease(objects: Objects) -> None:
    _keep_the_lease(objects, {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]})


def rights_for_everybody(objects: Objects) -> None:
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]}
    _keep_the_lease(objects, rule)["subjects"] = [{"kind": "Group", "name": "system:authenticated"}]


def _keep_the_lease(objects: Objects, *rules: Object) -> Object:
    add_variable(objects, "HASCHEDULER_LEASE_STORE", "kubernetes")
    pod_of(objects)["automountServiceAccountToken"] = True
    metadata = {"name": "scheduler", "namespace": "hascheduler"}
    objects.all.append({"kind": "Role", "metadata": metadata, "rules": list(rules)})
    subjects = [{"kind": "ServiceAccount", "name": "scheduler"}]
    role = {"kind": "Role", "name": "scheduler"}
    binding = {"kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": subjects}
    objects.all.append(binding)
    return binding


def variables_of_services(objects: Objects) -> None:
    del pod_of(objects, "StatefulSet", "rabbitmq")["enableServiceLinks"]


def spread_over_zones_alone(objects: Objects) -> None:
    pod_of(objects)["topologySpreadConstraints"][0]["topologyKey"] = "topology.kubernetes.io/zone"


def the_last_rollout_counts(objects: Objects) -> None:
    del pod_of(objects, name="processor")["topologySpreadConstraints"][0]["matchLabelKeys"]


def not_spread_at_all(objects: Objects) -> None:
    del pod_of(objects)["topologySpreadConstraints"]


def others_are_counted(objects: Objects) -> None:
    selector = pod_of(objects)["topologySpreadConstraints"][0]["labelSelector"]
    selector["matchLabels"]["app.kubernetes.io/component"] = "processor"


def demands_three_nodes(objects: Objects) -> None:
    pod_of(objects)["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "DoNotSchedule"


def requests_a_whole_node(objects: Objects) -> None:
    container_of(objects)["resources"]["requests"]["cpu"] = "500m"


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (pods.images_are_exact_and_local, the_latest_image),
    (pods.images_are_exact_and_local, an_image_without_a_tag),
    (pods.images_are_exact_and_local, always_from_the_registry),
    (pods.resources_are_said, no_memory_limit),
    (pods.resources_are_said, requests_more_than_its_limit),
    (pods.probes_are_there, no_startup_probe),
    (pods.probes_are_there, an_impatient_probe),
    (pods.probes_ask_what_answers, a_probe_of_a_port_that_is_not_there),
    (pods.probes_ask_what_answers, leadership_as_readiness),
    (pods.nobody_speaks_to_the_api_server, a_token_of_the_api_server),
    (pods.nobody_speaks_to_the_api_server, the_default_account),
    (pods.nobody_speaks_to_the_api_server, a_role_that_nothing_uses),
    (pods.nobody_speaks_to_the_api_server, a_lease_without_a_token),
    (pods.nobody_speaks_to_the_api_server, all_leases_for_the_lease),
    (pods.nobody_speaks_to_the_api_server, secrets_besides_the_lease),
    (pods.nobody_speaks_to_the_api_server, rights_for_everybody),
    (pods.no_variables_from_services, variables_of_services),
    (pods.replicas_are_spread, spread_over_zones_alone),
    (pods.replicas_are_spread, the_last_rollout_counts),
    (pods.replicas_are_spread, not_spread_at_all),
    (pods.replicas_are_spread, others_are_counted),
    (pods.one_node_is_enough_for_development, demands_three_nodes),
    (pods.one_node_is_enough_for_development, requests_a_whole_node),
)
