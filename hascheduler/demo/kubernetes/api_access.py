"""The token for the API (that of the environment, or else the admin token that the Deployment is given), and the
authority to trust where the pods speak HTTPS.

Names of generated Secrets carry a hash, so they are looked up where the Deployment refers to them: by the variable, and
the mounted file that it names.
"""

import base64
import binascii
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hascheduler.demo.kubernetes.kubectl import Kubectl, KubectlFailed
from hascheduler.demo.kubernetes.pods import SCHEDULER
from hascheduler.errors import CallerError, WorldError

_VARIABLE = "HASCHEDULER_ADMIN_TOKEN"
_TLS_FILE = "HASCHEDULER_HTTP_TLS_CERT_FILE"
_CA_FILE = "HASCHEDULER_CA_FILE"
_INSTEAD = "set HASCHEDULER_TOKEN to a token of an operator"
_INSTEAD_OF_CA = "set HASCHEDULER_CA_FILE to a file with the authority of the API's certificate"


_UNKNOWN = "the Deployment scheduler has no container scheduler as this demo knows it"


@dataclass(frozen=True, slots=True)
class SecretKey:
    secret: str
    key: str


async def admin_token(kubectl: Kubectl, deployment: Mapping[str, Any]) -> str | None:
    """None where the Deployment names none: the API then admits everyone, or the user has to bring a token."""
    where = find_admin_token(deployment)
    if where is None:
        return None
    try:
        secret = await kubectl.json("get", "secret", where.secret)
    except KubectlFailed as error:
        raise CallerError(f"the Secret {where.secret} can't be read ({error.said}); {_INSTEAD}") from None
    try:
        token = base64.b64decode(secret["data"][where.key], validate=True).decode("ascii").strip()
    except (KeyError, TypeError, binascii.Error, ValueError):
        raise CallerError(f"the Secret {where.secret} holds no token as {where.key}; {_INSTEAD}") from None
    return token


def speaks_https(deployment: Mapping[str, Any]) -> bool:
    return bool(_variables(deployment)[1].get(_TLS_FILE, {}).get("value"))


async def authority(kubectl: Kubectl, deployment: Mapping[str, Any]) -> ssl.SSLContext | None:
    """The authority that the commands inside the pods trust; None where the Deployment names none."""
    where = _key_of_file(deployment, _CA_FILE)
    if where is None:
        return None
    try:
        secret = await kubectl.json("get", "secret", where.secret)
    except KubectlFailed as error:
        raise CallerError(f"the Secret {where.secret} can't be read ({error.said}); {_INSTEAD_OF_CA}") from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=base64.b64decode(secret["data"][where.key], validate=True).decode("ascii"))
    except (KeyError, TypeError, binascii.Error, ValueError, ssl.SSLError):
        raise CallerError(f"the Secret {where.secret} holds no certificate as {where.key}; {_INSTEAD_OF_CA}") from None
    return context


def find_admin_token(deployment: Mapping[str, Any]) -> SecretKey | None:
    """Where the Deployment has its admin token from: a variable from a Secret, or one that names a mounted file."""
    _, variables = _variables(deployment)
    if _VARIABLE not in variables:
        return _key_of_file(deployment, f"{_VARIABLE}_FILE")
    try:
        reference = variables[_VARIABLE].get("valueFrom", {}).get("secretKeyRef")
        return None if reference is None else SecretKey(reference["name"], reference["key"])
    except (KeyError, TypeError, AttributeError):
        raise WorldError(_UNKNOWN) from None


def _key_of_file(deployment: Mapping[str, Any], variable: str) -> SecretKey | None:
    """The key of a Secret that is mounted as the file which ``variable`` names; None where it is not set."""
    container, variables = _variables(deployment)
    try:
        if variable not in variables:
            return None
        file = PurePosixPath(variables[variable]["value"])
        mounted = _mounted(deployment["spec"]["template"]["spec"], container)
        return next((key for path, key in mounted if path == file), None)
    except (KeyError, TypeError, AttributeError):
        raise WorldError(_UNKNOWN) from None


def _variables(deployment: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The scheduler's container, and its variables by name."""
    try:
        spec = deployment["spec"]["template"]["spec"]
        container = next(one for one in spec["containers"] if one["name"] == SCHEDULER)
        return container, {one["name"]: one for one in container.get("env", ())}
    except (KeyError, TypeError, AttributeError, StopIteration):
        raise WorldError(_UNKNOWN) from None


def _mounted(spec: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[tuple[PurePosixPath, SecretKey]]:
    """The keys of Secrets that are files in that container. Where a volume lists no items, any file may be a key."""
    volumes = {one["name"]: one for one in spec.get("volumes", ())}
    for mount in container.get("volumeMounts", ()):
        folder = PurePosixPath(mount["mountPath"])
        volume = volumes.get(mount["name"], {})
        sources = [one.get("secret") for one in volume.get("projected", {}).get("sources", ())]
        for source in [volume.get("secret"), *sources]:
            if source is None:
                continue
            name = source.get("secretName") or source["name"]
            for item in source.get("items", ()):
                yield _place(folder, mount, item["path"]), SecretKey(name, item["key"])
            if not source.get("items"):
                for variable in container.get("env", ()):
                    file = PurePosixPath(variable.get("value") or "/")
                    if "subPath" in mount or file.parent == folder:
                        yield _place(folder, mount, file.name), SecretKey(name, mount.get("subPath", file.name))


def _place(folder: PurePosixPath, mount: Mapping[str, Any], path: str) -> PurePosixPath:
    """A mount with a ``subPath`` is that one file itself."""
    return folder if "subPath" in mount else folder / path
