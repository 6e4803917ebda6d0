"""Whose fault it is when a replica does not do what it was asked: each answer as the error that it is."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from hascheduler.cli.environment import access, own_url
from hascheduler.cli.replica import RevisionChanged, as_cli_errors, replica
from hascheduler.errors import CallerError, Conflict, InvalidInput, WorldError
from tests.unit.cli.invoking import invoke


class _Answering(BaseHTTPRequestHandler):
    status, body = 200, b"{}"
    length: int | None = None

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body) if self.length is None else self.length))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), _Answering) as server:
        serving = Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield server
        server.shutdown()
        serving.join()


def problem(kind: str, detail: str, errors: str = "[]") -> bytes:
    return f'{{"type": "urn:hascheduler:problem:{kind}", "detail": "{detail}", "errors": {errors}}}'.encode()


_ONE = '[{"path": "trigger.at.0", "problem": "is late", "expected": "an earlier one"}]'
_TWO = '[{"path": "a", "problem": "x", "expected": "y"}, {"path": "b", "problem": "x", "expected": "y"}]'


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (404, problem("not-found", "no schedule 'a'"), CallerError, "no schedule 'a'"),
        (409, problem("conflict", "taken"), Conflict, "taken"),
        (412, problem("stale", "rev 3 it is"), RevisionChanged, "it was changed by another request"),
        (422, problem("invalid", "d", _ONE), InvalidInput, "trigger.at.0: is late; expected an earlier one"),
        (422, problem("invalid", "d", _TWO), CallerError, "a: x; expected y | b: x; expected y"),
        (422, b"{}", WorldError, "answered 422: not a replica"),
        (500, problem("unreadable", "broken"), WorldError, "answered 500: broken"),
        (401, problem("unauthorized", "who?"), CallerError, "who?; set HASCHEDULER_TOKEN"),
        (200, b"[]", WorldError, "not a replica"),
        (200, b"hello", WorldError, "does not answer like a replica"),
    ],
)
def test_every_answer_is_the_error_that_it_is(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch, *, status: int, body: bytes, kind: type, said: str
) -> None:
    monkeypatch.setattr(_Answering, "status", status)
    monkeypatch.setattr(_Answering, "body", body)
    with pytest.raises(kind) as raised, replica(access(f"http://127.0.0.1:{server.server_port}")) as scheduler:
        scheduler.schedules.get("a")
    assert said in str(raised.value)
    with replica(access(f"http://127.0.0.1:{server.server_port}")) as scheduler:
        with pytest.raises(kind) as inside, as_cli_errors():
            scheduler.schedules.get("a")
        assert str(inside.value) == str(raised.value)


def test_a_stream_that_ends_in_between_broke_off(server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Answering, "length", 100)
    monkeypatch.setattr(_Answering, "body", b'{"heading": 1}\n')
    heard: list[str] = []
    with (
        pytest.raises(WorldError, match=r"127.0.0.1:\d+ broke off \(RemoteProtocolError\)"),
        replica(access(f"http://127.0.0.1:{server.server_port}"), "broke off") as scheduler,
    ):
        heard.extend(scheduler.cluster.record("1s"))


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [(200, b'{"ready": true, "reason": ""}', ""), (503, b'{"ready": false, "reason": "busy"}', "busy")],
)
def test_a_process_that_is_not_ready_says_why(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch, *, status: int, body: bytes, reason: str
) -> None:
    monkeypatch.setattr(_Answering, "status", status)
    monkeypatch.setattr(_Answering, "body", body)
    with replica(access(f"http://127.0.0.1:{server.server_port}")) as scheduler:
        assert scheduler.cluster.health() == reason
    monkeypatch.setattr(_Answering, "body", b'{"detail": "of a proxy"}')
    with pytest.raises(WorldError), replica(access(f"http://127.0.0.1:{server.server_port}")) as scheduler:
        scheduler.cluster.health()


def test_a_batch_is_sent_again_under_its_key_while_the_replica_is_busy(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = b'{"batch": "batch:1", "results": [{"status": 201, "job": "job:1", "problem": null}]}'
    answers = iter([(429, problem("overloaded", "too much")), (503, problem("overloaded", "later")), (200, accepted)])
    keys: list[str] = []

    def do_post(self: _Answering) -> None:
        keys.append(self.headers["Idempotency-Key"])
        self.rfile.read(int(self.headers["Content-Length"]))
        self.status, self.body = next(answers)
        self.do_GET()

    monkeypatch.setattr(_Answering, "do_POST", do_post, raising=False)
    monkeypatch.setattr(_Answering, "body", b'{"alive": true, "reason": ""}')
    url = f"http://127.0.0.1:{server.server_port}"
    ended = invoke("job", "batch", "-", "-o", "name", input='{"definition": "log"}', HASCHEDULER_URL=url)
    assert (ended.status, ended.out, ended.err) == (0, "batch:1\n", "")
    assert len(keys) == 3
    assert len(set(keys)) == 1


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, None),
        ({"URL": "http://a:1"}, None),
        ({"URL": "http://a:1", "HEALTH_PORT": "0"}, None),
        ({"URL": "http://a:1", "HEALTH_PORT": "none"}, None),
        ({"URL": "http://a:1", "HEALTH_PORT": "90", "HEALTH_HOST": "0.0.0.0"}, "http://127.0.0.1:90"),
        ({"HEALTH_PORT": "90", "HEALTH_HOST": "::"}, "http://[::1]:90"),
        ({"HEALTH_PORT": "90", "HEALTH_HOST": "10.0.0.7"}, "http://10.0.0.7:90"),
    ],
)
def test_a_container_asks_itself(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str | None) -> None:
    for name in ("URL", "HEALTH_PORT", "HEALTH_HOST"):
        monkeypatch.delenv(f"HASCHEDULER_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(f"HASCHEDULER_{name}", value)
    assert own_url() == url
