"""`DefinitionStore`: named types of job and their limits."""

from hascheduler.model.documents import decode_definition
from tests.contract.backends import Backend, on
from tests.contract.racing import RACERS, raced
from tests.factories import make_definition

pytestmark = on("memory", "mongomock", "pymongo", "motor")


async def test_a_new_definition_has_rev_1(backend: Backend) -> None:
    document, is_new = await backend.definitions.put(make_definition("log", max_concurrency=3, rev=77))
    assert is_new is True
    assert decode_definition(document["_id"], document) == make_definition("log", max_concurrency=3, rev=1)
    assert await backend.definitions.get("log") == document


async def test_a_replacement_raises_the_stored_rev_whatever_it_says_itself(backend: Backend) -> None:
    await backend.definitions.put(make_definition("log", max_concurrency=3))
    document, is_new = await backend.definitions.put(make_definition("log", attempts_max=9, rev=77))
    assert is_new is False
    assert decode_definition(document["_id"], document) == make_definition("log", attempts_max=9, rev=2)
    assert await backend.definitions.get("log") == document


async def test_only_the_named_rev_is_replaced_or_deleted(backend: Backend) -> None:
    assert await backend.definitions.replace(make_definition(), 1) is None
    await backend.definitions.put(make_definition())
    assert await backend.definitions.replace(make_definition(max_concurrency=2), 2) is None
    document = await backend.definitions.replace(make_definition(max_concurrency=2), 1)
    assert document is not None
    assert decode_definition(document["_id"], document) == make_definition(max_concurrency=2, rev=2)
    assert await backend.definitions.get("log") == document
    assert await backend.definitions.delete("log", 1) is False
    assert await backend.definitions.delete("log", 2) is True


async def test_one_is_created_where_there_is_none(backend: Backend) -> None:
    document = await backend.definitions.create(make_definition(max_concurrency=2, rev=9))
    assert document is not None
    assert decode_definition(document["_id"], document) == make_definition(max_concurrency=2, rev=1)
    assert await backend.definitions.create(make_definition()) is None
    assert await backend.definitions.get("log") == document


async def test_an_equal_replacement_is_one_too(backend: Backend) -> None:
    await backend.definitions.put(make_definition())
    document, is_new = await backend.definitions.put(make_definition())
    assert (document["rev"], is_new) == (2, False)


async def test_an_unknown_definition_is_none(backend: Backend) -> None:
    assert await backend.definitions.get("log") is None


async def test_they_are_listed_by_name_in_pages(backend: Backend) -> None:
    for name in ("b", "é", "a", "c", "B"):
        await backend.definitions.put(make_definition(name))
    assert [document["_id"] for document in await backend.definitions.list(None, 3)] == ["B", "a", "b"]
    assert [document["_id"] for document in await backend.definitions.list("b", 3)] == ["c", "é"]
    assert list(await backend.definitions.list("é", 3)) == []


async def test_a_deleted_definition_is_gone_and_begins_anew(backend: Backend) -> None:
    await backend.definitions.put(make_definition())
    await backend.definitions.put(make_definition())
    assert await backend.definitions.delete("log") is True
    assert await backend.definitions.delete("log") is False
    assert await backend.definitions.get("log") is None
    document, is_new = await backend.definitions.put(make_definition())
    assert (document["rev"], is_new) == (1, True)


async def test_fifty_racing_puts_make_one_and_each_raise_its_rev(backend: Backend) -> None:
    answers = await raced(backend.definitions.put(make_definition()) for _ in range(RACERS))
    assert [is_new for _, is_new in answers].count(True) == 1
    assert sorted(document["rev"] for document, _ in answers) == list(range(1, RACERS + 1))
