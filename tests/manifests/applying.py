"""What the API server refuses when one set of objects is applied over another: changes of fields that can't change."""

from collections.abc import Iterator

from tests.manifests.objects import Object, Objects

_CHANGEABLE = {
    "Job": {"parallelism", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend", "backoffLimit"},
    "StatefulSet": {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
                    "persistentVolumeClaimRetentionPolicy"},
}  # fmt: skip
"""Fields of ``spec``, where all others are fixed."""
_FIXED = {"Deployment": {"selector"}, "DaemonSet": {"selector"}, "Service": {"clusterIP"}}
"""Fields of ``spec``, where all others may change."""


def refused(before: Objects, after: Objects) -> Iterator[str]:
    """A line for each object that `kubectl apply` would end with an error for."""
    stored = {_key(found): found for found in before.all}
    for found in after.all:
        old = stored.get(_key(found))
        if old is None:
            continue
        spec, was, kind = found.get("spec", {}), old.get("spec", {}), found["kind"]
        differing = {field for field in {*spec, *was} if spec.get(field) != was.get(field)}
        fixed = differing & _FIXED.get(kind, set())
        if kind in _CHANGEABLE:
            fixed = differing - _CHANGEABLE[kind]
        if found.get("roleRef") != old.get("roleRef"):
            fixed |= {"roleRef"}
        if found.get("immutable") and found.get("data") != old.get("data"):
            fixed |= {"data"}
        if fixed:
            yield f"{kind}/{found['metadata']['name']}: {', '.join(sorted(fixed))} can't change"


def _key(found: Object) -> tuple[str, str, str]:
    return found["kind"], found["metadata"].get("namespace", ""), found["metadata"]["name"]
