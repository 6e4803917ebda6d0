"""``scripts/kind-up``: the cluster, the images, the manifests, and then it runs. Again: only what is left to do."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from hascheduler.errors import CallerError, HaschedulerError, WorldError
from kind import CLUSTER, CONTEXT, URL
from kind.images import build, load, provide, read_images
from kind.rollout import wait
from kind.tools import Tools, find_tools

_ROOT = Path(__file__).parent.parent
_OVERLAY = "k8s/overlays/kind"
_PATIENCE_S = 600.0
_NODES_READY = "180s"


def up(root: Path, say: Callable[[str], None]) -> None:
    """A `CallerError` or `WorldError` says what went wrong, and what to look at."""
    tools = find_tools()
    images = read_images(root)
    _make_cluster(tools, root, say)
    ours = [image for image in images if image.target is not None]
    say(f"building {', '.join(image.reference for image in ours)}")
    changed = [image for image in ours if build(tools, root, image)]
    say("bringing the images to the nodes")
    load(tools, ours)
    nodes = [node for node in _lines(tools.ask(tools.kind, "get", "nodes", "--name", CLUSTER)) if "worker" in node]
    for image in images:
        if image.target is None:
            provide(tools, image, nodes)
    was_there = tools.object("deployment", "scheduler") is not None
    say(f"applying {_OVERLAY}")
    tools.do(tools.kubectl, "--context", CONTEXT, "apply", "--kustomize", str(root / _OVERLAY))
    if was_there and changed:
        # The tag is the same, so nothing in the manifests tells the pods that their image is another.
        say("the images are new: replacing the pods")
        tools.do(*tools.kubectl_command("rollout", "restart", "deployment", "bootstrap", "scheduler", "processor"))
    wait(tools, say, _PATIENCE_S)
    _tell_the_way_in(say)


def _make_cluster(tools: Tools, root: Path, say: Callable[[str], None]) -> None:
    if CLUSTER in _lines(tools.ask(tools.kind, "get", "clusters")):
        say(f"the cluster {CLUSTER} is there")
        return
    say(f"making the cluster {CLUSTER} (this takes a minute or two)")
    try:
        config = str(root / "kind" / "cluster.yaml")
        tools.do(tools.kind, "create", "cluster", "--name", CLUSTER, "--config", config, "--wait", _NODES_READY)
    except WorldError as error:
        raise WorldError(
            f"{error}; is port 8080 taken, or the memory short? scripts/kind-down removes what is there"
        ) from None


def _tell_the_way_in(say: Callable[[str], None]) -> None:
    say(f"the API: {URL}, its reference: {URL}/docs    (kubectl's context is {CONTEXT})")
    say("its token, for the `hascheduler` commands and as a bearer token:")
    say(f"    export HASCHEDULER_TOKEN=$(cat {_OVERLAY}/secrets/hascheduler-scheduler/admin-token)")
    say(f"then: scripts/demo-failover --context {CONTEXT}")


def _lines(said: str | None) -> list[str]:
    return (said or "").split()


def main() -> None:
    began_s = time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began_s:5.0f} s  {line}\n")
        sys.stdout.flush()

    try:
        up(_ROOT, say)
    except HaschedulerError as error:
        sys.stderr.write(f"kind-up: {error}\n")
        sys.exit(2 if isinstance(error, CallerError) else 1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
