"""Whom a program or a command asks: options before variables before contexts; and the file that holds contexts."""

import os
import stat
from pathlib import Path

import pytest

from hascheduler.client import AsyncScheduler, InvalidInput, Scheduler
from hascheduler.contexts import Context, Contexts, find_access, read_contexts, write_contexts

PROD = Context(urls=["https://p1", "https://p2"], token="hsk_prod", ca_file="/prod.pem")
BARE = Context(urls=["http://bare"])
OURS = ("URL", "TOKEN", "TOKEN_FILE", "CA_FILE", "CONTEXT", "CLIENT_CERT_FILE", "CLIENT_KEY_FILE")


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in OURS:
        monkeypatch.delenv(f"HASCHEDULER_{name}", raising=False)
    monkeypatch.delenv("HASCHEDULER_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config/hascheduler/contexts.toml"


@pytest.mark.parametrize(
    ("variables", "options", "found"),
    [
        ("", {}, "http://127.0.0.1:8080 None"),
        ("current=prod", {}, "https://p1,https://p2 hsk_prod /prod.pem"),
        ("current=prod CONTEXT=bare", {}, "http://bare None"),
        ("current=prod TOKEN=hsk_mine CA_FILE=/mine.pem", {}, "https://p1,https://p2 hsk_mine /mine.pem"),
        # A token goes to the URLs of its own context alone.
        ("current=prod URL=http://u", {}, "http://u None"),
        ("current=prod", {"url": "http://o"}, "http://o None"),
        ("CONTEXT=prod URL=http://u TOKEN=hsk_mine", {}, "http://u hsk_mine"),
        # A context that an option names comes before variables, and goes with the other options.
        ("URL=http://u TOKEN=hsk_mine", {"context": "prod"}, "https://p1,https://p2 hsk_prod /prod.pem"),
        ("URL=http://u TOKEN=hsk_mine", {"context": "bare"}, "http://bare hsk_mine"),
        ("", {"context": "prod", "url": "http://o", "ca_file": "/o.pem"}, "http://o hsk_prod /o.pem"),
        ("TOKEN=hsk_mine TOKEN_FILE=/nowhere", {}, "http://127.0.0.1:8080 hsk_mine"),
    ],
)
def test_an_option_comes_before_a_variable_before_a_context(
    monkeypatch: pytest.MonkeyPatch, variables: str, options: dict[str, str], found: str
) -> None:
    given = dict(pair.split("=") for pair in variables.split())
    write_contexts(Contexts(given.pop("current", ""), {"prod": PROD, "bare": BARE}))
    for name, value in given.items():
        monkeypatch.setenv(f"HASCHEDULER_{name}", value)
    access = find_access(**options)
    assert f"{access.url} {access.token()} {access.certificates[0].path}".rstrip() == found


@pytest.mark.parametrize("kind", [Scheduler, AsyncScheduler])
@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ("URL=ftp://u", "HASCHEDULER_URL: 'ftp://u' is not a URL"),
        ("TOKEN_FILE=/nowhere", "HASCHEDULER_TOKEN_FILE: /nowhere: No such file"),
        ("TOKEN=a,b\tc", "HASCHEDULER_TOKEN: contains no token"),
        ("CA_FILE=/nowhere", "HASCHEDULER_CA_FILE: /nowhere: No such file"),
        ("CLIENT_KEY_FILE=/k", "HASCHEDULER_CLIENT_CERT_FILE: and HASCHEDULER_CLIENT_KEY_FILE must be set together"),
        ("CONTEXT=prdo", "HASCHEDULER_CONTEXT: no context 'prdo'; expected prod"),
        ("CONTEXT=wrong", "context wrong: url: 'http://' is not a URL"),
    ],
)
def test_the_sdk_names_the_variable_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch, kind: type[Scheduler | AsyncScheduler], variables: str, named: str
) -> None:
    write_contexts(Contexts("", {"prod": PROD, "wrong": Context(urls=["http://"])}))
    name, _, value = variables.partition("=")
    monkeypatch.setenv(f"HASCHEDULER_{name}", value)
    with pytest.raises(InvalidInput, match=named):
        kind.from_env()


def test_the_file_is_its_owners_alone_and_holds_what_was_written(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dotfile = tmp_path / "dotfile"
    dotfile.touch(0o644)
    file.parent.mkdir(parents=True)
    file.symlink_to(dotfile)
    written = Contexts("prod", {"prod": PROD, 'a "q" é': Context(["http://a"], "", "/x y\\z", output="json")})
    write_contexts(written)
    assert read_contexts() == written
    assert file.is_symlink()
    assert stat.S_IMODE(dotfile.stat().st_mode) == 0o600
    with pytest.raises(InvalidInput, match=r"context prod\.ca_file"):
        write_contexts(Contexts("", {"prod": Context(ca_file="/x\ny")}))
    assert read_contexts() == written
    monkeypatch.setenv("HASCHEDULER_CONFIG", os.devnull)
    with pytest.raises(InvalidInput, match="/dev/null: is not a file"):
        write_contexts(written)
    assert {path.name for path in tmp_path.iterdir()} == {"config", "dotfile"}
