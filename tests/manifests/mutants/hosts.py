"""Names that lead nowhere, or to one namespace alone."""

from tests.manifests.mutants.places import Spoil, add_setting, pod_of
from tests.manifests.objects import Objects
from tests.manifests.rules import Rule, hosts


def a_member_that_is_not_there(objects: Objects) -> None:
    _name_members(objects, "mongodb-0.mongodb:27017,mongodb-1.mongodb:27017")


def a_service_that_has_no_names_of_pods(objects: Objects) -> None:
    del objects.get("Service", "mongodb")["spec"]["clusterIP"]


def a_collector_of_nobody(objects: Objects) -> None:
    add_setting(objects, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")


def members_of_one_namespace(objects: Objects) -> None:
    _name_members(objects, "mongodb-0.mongodb.hascheduler.svc:27017")


def a_collector_of_one_domain(objects: Objects) -> None:
    add_setting(objects, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel-collector.monitoring.svc.cluster.local:4318")


def a_query_of_one_namespace(objects: Objects) -> None:
    query = 'sum(hascheduler_definition_jobs{namespace="hascheduler"})'
    scaler = {"metadata": {"name": "processor"}, "spec": {"triggers": [{"metadata": {"query": query}}]}}
    objects.all.append({"kind": "ScaledObject", **scaler})


def _name_members(objects: Objects, members: str) -> None:
    pod_of(objects, "Deployment", "bootstrap")["initContainers"][0]["env"][0]["value"] = members


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (hosts.hosts_are_there, a_member_that_is_not_there),
    (hosts.hosts_are_there, a_service_that_has_no_names_of_pods),
    (hosts.hosts_are_there, a_collector_of_nobody),
    (hosts.no_namespace_is_written_out, members_of_one_namespace),
    (hosts.no_namespace_is_written_out, a_collector_of_one_domain),
    (hosts.no_namespace_is_written_out, a_query_of_one_namespace),
)
