"""What a scan of a Hermes store passes on to the matcher: all that may match, and little else (issue 3)."""

from __future__ import annotations

import apsw
import pytest

from hermes_tui.storage.fulltext import parse_query
from hermes_tui.stores.hermes.asks import SEARCHED, prepare_asking, raw_condition
from hermes_tui.stores.hermes.schema import Schema

SCHEMA = Schema({"messages": frozenset(("id", "session_id", "role", *SEARCHED))}, {}, None)


@pytest.fixture
def connection() -> apsw.Connection:
    made = apsw.Connection(":memory:")
    made.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id, role, content, tool_name, tool_calls)")
    prepare_asking(made)
    return made


def proposed(connection: apsw.Connection, query: str, content: object, role: str = "assistant") -> bool:
    """Whether a scan for the query looks at a message with this content."""
    connection.execute("DELETE FROM messages")
    connection.execute("INSERT INTO messages VALUES (1, 's', ?, ?, NULL, NULL)", (role, content))
    sql, values = raw_condition(parse_query(query), SCHEMA, SEARCHED)
    return bool(connection.execute(f"SELECT 1 FROM messages m WHERE {sql}", values).fetchall())


@pytest.mark.parametrize("query", ["cafe", "비용"])
@pytest.mark.parametrize("content", ["", None, "tea", "차"])
def test_what_cannot_match_is_passed_over(connection: apsw.Connection, query: str, content: object) -> None:
    assert not proposed(connection, query, content)


@pytest.mark.parametrize(
    "content",
    [
        "a CAFE",
        "a café",
        "a cafe\u0301",
        "a café".encode(),
        "tea\0 and a café",
        b"tea\0 and a caf\xc3\xa9",
        '\0json:["x"]',
    ],
)
def test_a_word_with_accents_or_behind_a_nul_is_looked_at(connection: apsw.Connection, content: object) -> None:
    assert proposed(connection, "cafe", content)


@pytest.mark.parametrize("content", ["이번 달 비용", "tea\0비용", "비용".encode(), '\0json:["x"]'])
def test_korean_letters_are_looked_at_wherever_they_stand(connection: apsw.Connection, content: object) -> None:
    assert proposed(connection, "비용", content)


def test_escapes_count_only_where_they_are_read(connection: apsw.Connection) -> None:
    assert proposed(connection, "비용", r'{"a": "\ube44\uc6a9"}', role="tool")
    assert not proposed(connection, "비용", r'{"a": "\ube44\uc6a9"}', role="user")
