"""YAML read as JSON is: nothing that JSON has no form for, and no document that could hurt."""

import pytest

from hascheduler.cli.input.documents import TEXT_LENGTH_MAX, read_document, read_documents
from hascheduler.errors import InvalidInput

_BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)


def test_documents_are_read_one_by_one() -> None:
    text = "a: 1\n---\n# nothing\n---\n{b: [true, null, 1.5, text]}\n"
    assert list(read_documents(text, "x")) == [{"a": 1}, None, {"b": [True, None, 1.5, "text"]}]


@pytest.mark.parametrize("text", ["2030-01-31T09:30:00+02:00", "2030-01-31", "2030-01-31 09:30:00"])
def test_an_instant_stays_the_text_that_it_is(text: str) -> None:
    assert read_document(f"at: {text}", "x") == {"at": text}


def test_a_merged_mapping_is_a_mapping() -> None:
    text = "base: &base {a: 1, b: 1}\nof: {<<: *base, b: 2}"
    assert read_document(text, "x")["of"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2", "x, line 2: 'a' twice"),
        ("a: {b: 1, c: 2, b: 3}", "x, line 1: 'b' twice"),
        ("expression: */5 * * * *", "needs quotes"),
        ("a: [", "x, line 2"),
        ("a: !!python/object:os.system x", "python/object"),
        ("a: !!binary aGk=", "x, document 1, a: a bytes"),
        ("a: 1\n---\na: [.inf]", "x, document 2, a.0: inf is no number"),
        ("a: {b: .nan}", "x, document 1, a.b: nan is no number"),
        ("1: 2", "x, document 1: the key 1 is no text"),
        ("? [a]\n: 1", "unhashable"),
        ("\x00", "x: "),
        ("a: &a [*a]", "x, document 1: too large"),
        (_BOMB, "x, document 1: too large"),
        ("[" * 65 + "]" * 65, "x, line 1: nested too deeply"),
        ("[" * 300_000, "x, line 1: nested too deeply"),
        ("a" * (TEXT_LENGTH_MAX + 1), "x: larger than 4 MiB"),
    ],
)
def test_what_json_does_not_have_is_refused_where_it_stands(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        list(read_documents(text, "x"))
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["", "a: 1\n---\nb: 1", "[1]", "text"])
def test_one_document_is_one_object(text: str) -> None:
    with pytest.raises(InvalidInput, match="one YAML document"):
        read_document(text, "x")
