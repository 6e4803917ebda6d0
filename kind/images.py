"""The images: ours are built and loaded, those of the servers come to the nodes by themselves or over this machine.

Their names and tags are read from the one place that has them.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from hascheduler.errors import InvalidInput
from kind import CLUSTER
from kind.tools import Tools

LIST = Path("k8s/components/images/kustomization.yaml")
_TARGETS = {"hascheduler": "scheduler", "hascheduler-processor": "processor"}


@dataclass(frozen=True, slots=True)
class Image:
    """``target`` is the stage of the Dockerfile that makes it; None: it is made elsewhere."""

    reference: str
    target: str | None

    @property
    def full(self) -> str:
        """With the registry that a node assumes: an engine may assume another."""
        first, slash, _ = self.reference.partition("/")
        if slash and ("." in first or ":" in first or first == "localhost"):
            return self.reference
        return f"docker.io/{'' if slash else 'library/'}{self.reference}"


def read_images(root: Path) -> Sequence[Image]:
    """`InvalidInput` where the file is not what kustomize takes, or lacks one of ours."""
    try:
        rows = yaml.safe_load((root / LIST).read_text(encoding="utf-8"))["images"]
        images = [
            Image(f"{row.get('newName', row['name'])}:{row['newTag']}", _TARGETS.get(row["name"])) for row in rows
        ]
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            (str(LIST),), f"can't be read ({type(error).__name__})", "images with name and newTag"
        ) from None
    if not {image.target for image in images} >= set(_TARGETS.values()):
        raise InvalidInput((str(LIST),), "lacks an image of ours", " and ".join(_TARGETS))
    return images


def build(tools: Tools, root: Path, image: Image) -> bool:
    """Build it; whether it is another than before."""
    assert image.target is not None, "only ours are built"
    before = _id(tools, image)
    tools.do(tools.container, "build", "--target", image.target, "--tag", image.full, str(root))
    return _id(tools, image) != before


def load(tools: Tools, images: Sequence[Image]) -> None:
    """Bring them from this machine onto all nodes."""
    if tools.engine == "docker":
        tools.do(tools.kind, "load", "docker-image", "--name", CLUSTER, *(image.reference for image in images))
        return
    # What kind asks docker for by name, other engines know under other names; an archive holds the full one.
    for image in images:
        with tempfile.TemporaryDirectory() as folder:
            archive = str(Path(folder) / "image.tar")
            tools.do(tools.container, "save", "--output", archive, image.full)
            tools.do(tools.kind, "load", "image-archive", "--name", CLUSTER, archive)


def provide(tools: Tools, image: Image, nodes: Sequence[str]) -> None:
    """See that these nodes have an image of others: they pull it, or where they can't, this machine does."""
    lacking = [node for node in nodes if tools.ask(*_on(tools, node, "inspecti", "-q", image.full)) is None]
    if all(tools.ask(*_on(tools, node, "pull", image.full)) is not None for node in lacking):
        return
    tools.do(tools.container, "pull", image.full)
    load(tools, [image])


def _on(tools: Tools, node: str, *arguments: str) -> tuple[str, ...]:
    """A node is a container of the engine's."""
    return (tools.container, "exec", node, "crictl", *arguments)


def _id(tools: Tools, image: Image) -> str | None:
    return tools.ask(tools.container, "image", "inspect", "--format", "{{.Id}}", image.full)
