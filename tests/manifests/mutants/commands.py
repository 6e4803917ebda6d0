"""Words that the program does not understand."""

from tests.manifests.mutants.places import Spoil, add_setting, container_of, pod_of
from tests.manifests.objects import Objects
from tests.manifests.rules import Rule, commands


def a_misspelt_setting(objects: Objects) -> None:
    add_setting(objects, "HASCHEDULER_LOGLEVEL", "info")


def a_misspelt_variable_of_opentelemetry(objects: Objects) -> None:
    add_setting(objects, "OTEL_EXPORTER_OTLP_ENDPIONT", "http://collector:4318")


def a_reference_to_nothing(objects: Objects) -> None:
    container_of(objects, name="processor")["args"].append("--name=$(HOSTNAME)")


def a_value_that_is_refused(objects: Objects) -> None:
    add_setting(objects, "HASCHEDULER_DRAIN_GRACE", "twenty seconds")


def settings_that_contradict(objects: Objects) -> None:
    add_setting(objects, "HASCHEDULER_LEASE_DURATION", "5s")


def an_unknown_command(objects: Objects) -> None:
    container_of(objects)["args"] = ["server"]


def an_unknown_option(objects: Objects) -> None:
    pod_of(objects, "Deployment", "bootstrap")["initContainers"][0]["args"].append("--force")


def a_command_instead_of_the_entry_point(objects: Objects) -> None:
    container_of(objects)["command"] = ["python", "-m", "hascheduler"]


def an_api_that_only_the_pod_reaches(objects: Objects) -> None:
    variables = container_of(objects)["env"]
    next(variable for variable in variables if variable["name"] == "HASCHEDULER_HTTP_HOST")["value"] = "127.0.0.1"


def another_port_than_the_process_has(objects: Objects) -> None:
    container_of(objects)["ports"][1]["containerPort"] = 7071


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (commands.variables_are_known, a_misspelt_setting),
    (commands.variables_are_known, a_misspelt_variable_of_opentelemetry),
    (commands.variables_are_known, a_reference_to_nothing),
    (commands.settings_are_accepted, a_value_that_is_refused),
    (commands.settings_are_accepted, settings_that_contradict),
    (commands.arguments_are_understood, an_unknown_command),
    (commands.arguments_are_understood, an_unknown_option),
    (commands.arguments_are_understood, a_command_instead_of_the_entry_point),
    (commands.ports_are_the_settings, an_api_that_only_the_pod_reaches),
    (commands.ports_are_the_settings, another_port_than_the_process_has),
)
