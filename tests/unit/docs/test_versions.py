"""The table of versions says what pyproject.toml, the workflow, the manifests and the servers of the tests have."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from hascheduler.embedded.servers import find_mongod
from tests.manifests import dockerfile
from tests.unit.manifests.test_rendering import OLDEST, VERSIONS

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
IMAGES = yaml.safe_load((ROOT / "k8s/components/images/kustomization.yaml").read_text("utf-8"))["images"]
_ROW = re.compile(r"^\| (\w+)[^|]* \| ([^|]*) \| ([^|]*) \| ([^|]*)\|$", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")
_PAGE = (ROOT / "docs/install.md").read_text("utf-8")
SUPPORTED, TESTED, SHIPPED = (
    {found[1]: _VERSION.findall(found[column]) for found in _ROW.finditer(_PAGE)} for column in (2, 3, 4)
)


def test_python() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    first = next(step["with"] for step in workflow["verify"]["steps"] if "python-version" in step.get("with", {}))
    run = [first["python-version"], *workflow["newer"]["strategy"]["matrix"]["python"]]
    of_package = [found[1] for line in PROJECT["classifiers"] if (found := re.fullmatch(r".*Python :: (3\.\d+)", line))]
    assert [f">={version}" for version in SUPPORTED["Python"]] == [PROJECT["requires-python"]]
    assert TESTED["Python"] == run == of_package
    assert SHIPPED["Python"] == _VERSION.findall(dockerfile.arguments()["PYTHON_IMAGE"])
    assert SHIPPED["Python"][0].rpartition(".")[0] in run


def test_mongodb() -> None:
    version = subprocess.run([find_mongod(), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"v(\d+\.\d+)\.", version)
    assert found is not None
    assert SUPPORTED["MongoDB"] == TESTED["MongoDB"] == [found[1]]
    assert SHIPPED["MongoDB"] == [found[1], *tag_of("mongo")]


def test_rabbitmq() -> None:
    assert TESTED["RabbitMQ"][0] in SUPPORTED["RabbitMQ"]
    assert SHIPPED["RabbitMQ"] == tag_of("rabbitmq")
    installed = [*Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")]
    if not installed:
        pytest.skip("no RabbitMQ is installed")
    assert {".".join(_VERSION.findall(each.name)[0].split(".")[:2]) for each in installed} <= set(TESTED["RabbitMQ"])


def test_kubernetes() -> None:
    assert SUPPORTED["Kubernetes"] == [OLDEST]
    assert TESTED["Kubernetes"] == VERSIONS


def tag_of(image: str) -> list[str]:
    return [one["newTag"] for one in IMAGES if one["name"] == image]
