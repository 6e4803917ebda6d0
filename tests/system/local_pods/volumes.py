"""What a kubelet mounts into a pod: Secrets and ConfigMaps as files, with the owner and modes that it gives them."""

import os
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

from tests.manifests.objects import Object, Objects

_SECRET_MODE = _CONFIG_MODE = 0o644
_GROUP_READS = 0o440


def make_volume(objects: Objects, volume: Object, folder: Path, group: int | None, claims: Path) -> Path:
    """The folder to mount; ``claims`` is where the pod's persistent ones are."""
    match volume:
        case {"secret": source}:
            data = {name: b64decode(value) for name, value in _data(objects, "Secret", source["secretName"]).items()}
            _write(folder, source, data, group)
        case {"configMap": source}:
            data = {name: value.encode() for name, value in _data(objects, "ConfigMap", source["name"]).items()}
            _write(folder, source, data, group)
        case {"emptyDir": _}:
            folder.mkdir(parents=True)
            _give(folder, group, 0o777)
        case {"persistentVolumeClaim": _}:
            folder = claims / volume["name"]
            if not folder.exists():
                folder.mkdir(parents=True)
                # As the root of a new file system, which belongs to root.
                _give(folder, group, 0o755)
        case _:
            raise AssertionError(f"a volume that this kubelet does not know: {volume}")
    return folder


def _data(objects: Objects, kind: str, name: str) -> Mapping[str, str]:
    [found] = [each for each in objects.of(kind) if each["metadata"]["name"] == name]
    data: Mapping[str, str] = found.get("data", {})
    return data


def _write(folder: Path, source: Object, data: Mapping[str, bytes], group: int | None) -> None:
    """Each file is a link into a folder that is a link itself, so that an update changes all of them at once."""
    inner = folder / "..2026_01_01"
    inner.mkdir(parents=True)
    (folder / "..data").symlink_to(inner.name)
    mode = source.get("defaultMode", _SECRET_MODE if "secretName" in source else _CONFIG_MODE)
    for item in source.get("items", [{"key": name, "path": name} for name in data]):
        file = inner / item["path"]
        file.write_bytes(data[item["key"]])
        os.chown(file, 0, group or 0)
        file.chmod(item.get("mode", mode) | (_GROUP_READS if group is not None else 0))
        (folder / item["path"]).symlink_to(f"..data/{item['path']}")
    for each in (folder, inner):
        _give(each, group, 0o755)


def update_volume(folder: Path, data: Mapping[str, bytes]) -> None:
    """New files in a Secret that is mounted: in a folder of their own first, then one link turns to all of them."""
    before = (folder / "..data").resolve()
    inner = folder / "..2026_01_02"
    inner.mkdir()
    for name, content in data.items():
        if (was := before / name).exists():
            file = inner / name
            file.write_bytes(content)
            os.chown(file, 0, was.stat().st_gid)
            file.chmod(was.stat().st_mode)
    os.chown(inner, 0, before.stat().st_gid)
    inner.chmod(before.stat().st_mode)
    (folder / "..data_tmp").symlink_to(inner.name)
    os.replace(folder / "..data_tmp", folder / "..data")


def _give(folder: Path, group: int | None, mode: int) -> None:
    """With a file system group, the group may write, and what is made there belongs to it."""
    os.chown(folder, 0, group or 0)
    folder.chmod(mode | 0o2070 if group is not None else mode)
