"""Names of things that are not there, and secrets where they do not belong."""

from tests.manifests.mutants.places import Spoil, add_variable, container_of, pod_of
from tests.manifests.objects import Objects
from tests.manifests.rules import Rule, references


def a_config_map_that_is_not_there(objects: Objects) -> None:
    container_of(objects)["envFrom"][0]["configMapRef"]["name"] = "hascheduler-settings"


def a_key_that_the_secret_lacks(objects: Objects) -> None:
    pod_of(objects, "Deployment", "bootstrap")["volumes"][1]["secret"]["items"][0]["key"] = "uri"


def a_secret_as_a_variable(objects: Objects) -> None:
    reference = {"secretKeyRef": {"name": "hascheduler-scheduler", "key": "admin-token"}}
    container_of(objects)["env"].append({"name": "HASCHEDULER_ADMIN_TOKEN", "valueFrom": reference})


def a_mount_without_a_volume(objects: Objects) -> None:
    container_of(objects)["volumeMounts"].append({"name": "cache", "mountPath": "/cache"})


def a_volume_that_nothing_mounts(objects: Objects) -> None:
    pod_of(objects)["volumes"].append({"name": "cache", "emptyDir": {}})


def a_file_of_another_name(objects: Objects) -> None:
    container_of(objects)["volumeMounts"][0]["mountPath"] = "/run/secrets/scheduler"


def a_file_that_the_configuration_names(objects: Objects) -> None:
    data = objects.get("ConfigMap", "rabbitmq-config")["data"]
    data["rabbitmq.conf"] = data["rabbitmq.conf"].replace("definitions.json", "users.json")


def a_service_of_nobody(objects: Objects) -> None:
    objects.get("Service", "hascheduler")["spec"]["selector"]["app.kubernetes.io/component"] = "api"


def a_service_to_no_port(objects: Objects) -> None:
    objects.get("Service", "rabbitmq")["spec"]["ports"][0]["targetPort"] = "amqps"


def a_route_to_no_service(objects: Objects) -> None:
    rules = [{"backendRefs": [{"name": "scheduler", "port": 8080}]}]
    objects.all.append({"kind": "HTTPRoute", "metadata": {"name": "api"}, "spec": {"rules": rules}})


def a_route_over_http_2(objects: Objects) -> None:
    objects.get("Service", "hascheduler")["spec"]["ports"][0]["appProtocol"] = "kubernetes.io/h2c"
    service = {"name": "hascheduler", "port": {"number": 8080}}
    rules = [{"http": {"paths": [{"backend": {"service": service}}]}}]
    objects.all.append({"kind": "Ingress", "metadata": {"name": "api"}, "spec": {"rules": rules}})


def a_stateful_set_without_its_service(objects: Objects) -> None:
    objects.get("StatefulSet", "mongodb")["spec"]["serviceName"] = "mongo"


def a_budget_of_nobody(objects: Objects) -> None:
    objects.get("PodDisruptionBudget", "mongodb")["spec"]["selector"]["matchLabels"] = {"app": "mongodb"}


def an_autoscaler_against_a_number(objects: Objects) -> None:
    scaler = {"metadata": {"name": "processor"}, "spec": {"scaleTargetRef": {"name": "processor"}}}
    objects.all.append({"kind": "HorizontalPodAutoscaler", **scaler})


def a_true_password(objects: Objects) -> None:
    objects.get("Secret", "hascheduler-mongodb")["data"]["admin-password"] = "aHVudGVyMg=="


def a_password_in_a_variable(objects: Objects) -> None:
    add_variable(objects, "HASCHEDULER_AMQP_URL", "amqp://scheduler:hunter2@rabbitmq:5672/")


def a_password_in_an_argument(objects: Objects) -> None:
    container_of(objects)["args"].append("--amqp-url=amqp://scheduler:hunter2@rabbitmq:5672/")


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (references.configuration_is_there, a_config_map_that_is_not_there),
    (references.configuration_is_there, a_key_that_the_secret_lacks),
    (references.configuration_is_there, a_secret_as_a_variable),
    (references.volumes_are_there_and_used, a_mount_without_a_volume),
    (references.volumes_are_there_and_used, a_volume_that_nothing_mounts),
    (references.files_that_are_named_are_mounted, a_file_of_another_name),
    (references.files_that_are_named_are_mounted, a_file_that_the_configuration_names),
    (references.services_reach_ports, a_service_of_nobody),
    (references.services_reach_ports, a_service_to_no_port),
    (references.routes_lead_to_services, a_route_to_no_service),
    (references.routes_lead_to_services, a_route_over_http_2),
    (references.owners_are_there, a_stateful_set_without_its_service),
    (references.owners_are_there, a_budget_of_nobody),
    (references.owners_are_there, an_autoscaler_against_a_number),
    (references.secrets_are_for_development_or_outside, a_true_password),
    (references.secrets_are_for_development_or_outside, a_password_in_a_variable),
    (references.secrets_are_for_development_or_outside, a_password_in_an_argument),
)
