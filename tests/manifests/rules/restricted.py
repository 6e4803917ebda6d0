"""The level `restricted` of the Pod Security Standards, control by control, and one more: a root that is read-only."""

from collections.abc import Iterator

from tests.manifests.objects import Objects

_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip
_SECCOMP = {"RuntimeDefault", "Localhost"}


def no_namespace_of_the_host(objects: Objects) -> Iterator[str]:
    for pod in objects.pods():
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.spec.get(field):
                yield f"{pod.name}: {field}"
        for container in pod.containers:
            if any("hostPort" in port for port in container.spec.get("ports", [])):
                yield f"{container.name}: hostPort"


def only_harmless_volumes(objects: Objects) -> Iterator[str]:
    for pod in objects.pods():
        for name, volume in pod.volumes.items():
            for kind in volume.keys() - {"name"} - _VOLUMES:
                yield f"{pod.name}: volume {name} is a {kind}"


def not_root(objects: Objects) -> Iterator[str]:
    for container in objects.containers():
        pod_context = container.pod.spec.get("securityContext", {})
        context = container.spec.get("securityContext", {})
        if not context.get("runAsNonRoot", pod_context.get("runAsNonRoot")):
            yield f"{container.name}: runAsNonRoot is not set"
        # Numeric, since the kubelet can't tell whether a name is root's.
        if not context.get("runAsUser", pod_context.get("runAsUser", 0)):
            yield f"{container.name}: runAsUser is root's, or not set"


def system_calls_are_filtered(objects: Objects) -> Iterator[str]:
    for container in objects.containers():
        profile = container.spec.get("securityContext", {}).get(
            "seccompProfile", container.pod.spec.get("securityContext", {}).get("seccompProfile", {})
        )
        if profile.get("type") not in _SECCOMP:
            yield f"{container.name}: seccompProfile {profile}"


def no_privilege(objects: Objects) -> Iterator[str]:
    for container in objects.containers():
        context = container.spec.get("securityContext", {})
        if context.get("allowPrivilegeEscalation") is not False:
            yield f"{container.name}: allowPrivilegeEscalation is not false"
        if context.get("privileged") or "procMount" in context or "seLinuxOptions" in context:
            yield f"{container.name}: privileged, procMount or seLinuxOptions"
        capabilities = context.get("capabilities", {})
        if "ALL" not in capabilities.get("drop", []) or capabilities.get("add"):
            yield f"{container.name}: capabilities {capabilities}"
    for pod in objects.pods():
        context = pod.spec.get("securityContext", {})
        for field in ("sysctls", "seLinuxOptions", "windowsOptions", "appArmorProfile"):
            if field in context:
                yield f"{pod.name}: {field}"


def read_only_root(objects: Objects) -> Iterator[str]:
    for container in objects.containers():
        if container.spec.get("securityContext", {}).get("readOnlyRootFilesystem") is not True:
            yield f"{container.name}: readOnlyRootFilesystem is not true"


def the_namespace_enforces_it(objects: Objects) -> Iterator[str]:
    for namespace in objects.of("Namespace"):
        if namespace["metadata"].get("labels", {}).get("pod-security.kubernetes.io/enforce") != "restricted":
            yield f"Namespace/{namespace['metadata']['name']} does not enforce restricted"
