"""Server-side JavaScript is off in every configuration, and nothing in the code asks for it."""

import yaml

from tests.manifests.rendering import EXTERNAL, EXTERNAL_ELSEWHERE, ROOT, VARIANTS, rendered


def _configurations() -> list[tuple[str, dict[str, object]]]:
    ours = [folder for folder in VARIANTS if folder not in (EXTERNAL, EXTERNAL_ELSEWHERE)]
    return [
        (folder, yaml.safe_load(rendered(folder).get("ConfigMap", "mongodb-config")["data"]["mongod.conf"]))
        for folder in ours
    ]


def test_it_is_off_in_every_configuration_that_is_ours() -> None:
    for folder, configuration in _configurations():
        assert configuration["security"]["javascriptEnabled"] is False, folder  # type: ignore[index]


def test_nothing_of_ours_asks_for_scripts() -> None:
    words = ("$where", "$function", "$accumulator", "mapReduce", "map_reduce", "bson.Code", "system.js")
    found = {
        (path.name, word)
        for folder in ("hascheduler", "processors")
        for path in (ROOT / folder).rglob("*.py")
        for word in words
        if word in path.read_text() and path.name != "users.py"  # which says that they are off
    }
    assert found == set()
