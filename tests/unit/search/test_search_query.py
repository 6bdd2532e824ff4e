"""Any text is a query, and means what a person expects (contract.md, search; facts/hermes.md section 6)."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.storage.fulltext import BadPattern, Matcher, parse_query
from hermes_tui.storage.letters import canonical, is_cjk, positions

SENTENCES = {
    "100%": ("this is 100% sure", "1000 things"),
    "it's": ("it's fine", "its fine"),
    "a/b": ("see a/b", "a or b"),
    "chat-send": ("use chat-send now", "send the chat"),
    "sure_thing": ("a sure_thing", "sure, that thing"),
    "my-app.config.ts": ("open my-app.config.ts", "my app ts config"),
    "20.04": ("Ubuntu 20.04 LTS", "04.20"),
    "(unbalanced": ("an unbalanced load", "balanced"),
    "TODO: fix": ("fix it, TODO", "todo list"),
    "x,y": ("x,y", "y,x"),
    "hello AND": ("hello there", "there"),
    "AND hello": ("hello there", "there"),
    "NOT docker": ("docker", "podman"),
    "OR docker OR": ("docker", "podman"),
    "docker AND deployment": ("deployment of docker", "docker"),
    "docker deployment": ("deployment of docker", "docker"),
    "docker OR podman": ("podman", "container"),
    "docker NOT stale": ("docker", "a stale docker"),
    "docker AND NOT stale": ("docker", "a stale docker"),
    "docker OR NOT podman": ("docker", "container"),
    "(docker OR podman) deploy": ("deploy podman", "docker"),
    '"exact phrase"': ("an exact phrase", "phrase exact"),
    '"exact phrase" other': ("other exact\nphrase", "exact phrase"),
    'say "hello': ("hello, I say", "say it"),
    "deploy*": ("deployment", "redeploy"),
    "DOCKER": ("Docker", "dockerd"),
    "cafe": ("un Café", "cafeteria"),
    "caf\u00e9": ("Cafe\u0301 noir", "caf"),
    "und": ("Hund und Katz", "Hunde"),
    "내부": ("게이트웨이내부구조", "내 부"),
    "부": ("게이트웨이내부", "내 뷰"),
    "게이트웨이내부": ("그 게이트웨이내부를", "게이트웨이 내부"),
    "修改youer": ("请修改youer服务端", "修改your"),
    "youer": ("修改youer服务端", "youers"),
    "服务": ("修改youer服务端", "服 务"),
    "docker2": ("docker2배포", "docker23"),
    "a가b": ("x a가b y", "aa가b"),
    '"내부 log"': ("게이트웨이내부 log", "내부 logs"),
    "비용 내부": ("내부의 비용", "비용"),
    "or": ("this or that", "order"),
    "***docker***": ("dockers", "xdocker"),
    "*docker": ("docker", "xdocker"),
    "𠮷野": ("𠮷野家", "吉野家"),
}


@pytest.mark.parametrize("query", SENTENCES)
def test_query_says_yes_and_no_as_a_person_expects(query: str) -> None:
    matcher = parse_query(query)
    yes, no = SENTENCES[query]
    assert matcher.matches(yes)
    assert not matcher.matches(no)


@pytest.mark.parametrize(
    "query", ["", " ", '"', "***", "AND", "OR NOT", "%", "()", '""', "-", "🚀", "\0", '"((', "NOT"]
)
def test_query_without_a_letter_finds_nothing_and_says_why(query: str) -> None:
    matcher = parse_query(query)
    assert matcher.empty_reason
    assert matcher.terms == ()
    assert matcher.find("AND OR NOT anything at all") is None


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("cafe", "Un Cafe\u0301!", ["Cafe\u0301"]),
        ("docker log", "Log of docker, log", ["Log", "docker", "log"]),
        ("chat-send", "a Chat--Send b", ["Chat--Send"]),
        ("수", "수수께끼", ["수", "수"]),
        ("deploy* deployment", "the deployment", ["deployment"]),
        ("a NOT b", "a c a", ["a", "a"]),
        ("x OR y", "y only", ["y"]),
        ("修改youer", "请修改youer服务", ["修改youer"]),
    ],
)
def test_marks_are_the_words_as_they_stand(query: str, text: str, marked: list[str]) -> None:
    marks = parse_query(query).find(text)
    assert marks is not None
    assert [text[start : start + length] for start, length in marks] == marked


@given(st.text())
def test_any_text_is_a_query(text: str) -> None:
    matcher = parse_query(text)
    assert (matcher.empty_reason is None) == bool(matcher.terms)


@given(
    st.lists(st.sampled_from(["AND", "OR", "NOT", "(", ")", '"', "a", "내", "*", "-", " ", "b*", "\n"])).map(" ".join)
)
def test_operators_in_any_order_are_a_query(text: str) -> None:
    parse_query(text).matches("a 내 b c")


@given(st.text(), st.text())
def test_marks_are_in_order_apart_and_inside_the_text(query: str, text: str) -> None:
    marks = parse_query(query).find(text + query)
    if marks is not None:
        end = 0
        for start, length in marks:
            assert start >= end
            assert length > 0
            end = start + length
        assert end <= len(text + query)


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=4))
def test_plain_words_keep_their_meaning(words: list[str]) -> None:
    """Lower-case words, whatever they are, mean all of them as whole words in any order."""
    matcher = parse_query(" ".join(words))
    assert matcher.matches("; ".join(reversed(words)).upper())
    assert not matcher.matches("".join(words) + "x")
    assert sorted(set(matcher.terms)) == sorted(set(words))


def naive_words(text: str) -> list[str]:
    """Words as unicode61 cuts them, cut again where CJK begins or ends."""
    connection = apsw.Connection(":memory:")
    tokens = connection.fts5_tokenizer("unicode61", [])(
        text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False,
        include_colocated=False,
    )  # fmt: skip
    words: list[str] = []
    for token in tokens:
        for letter in str(token):
            if words and words[-1] and is_cjk(words[-1][-1]) == is_cjk(letter):
                words[-1] += letter
            else:
                words.append(letter)
        words.append("")
    return [word for word in words if word]


LETTERS = st.sampled_from("abBéÉ1_-. \n가나게内部あアーßİσς½²ñ\u0301")


@given(st.text(LETTERS, max_size=12), st.text(LETTERS, min_size=1, max_size=4))
def test_one_word_is_found_where_unicode61_has_it(text: str, word: str) -> None:
    parts = naive_words(word)
    if len(parts) != 1:
        return
    found = parse_query(f'"{word}"').matches(text)
    wanted = parts[0]
    if is_cjk(wanted[0]):
        assert found == any(wanted in one for one in naive_words(text))
    else:
        assert found == (wanted in naive_words(text))


@given(st.text())
def test_canonical_text_keeps_its_places(text: str) -> None:
    assert len(positions(text)) == len(canonical(text)) + 1


def test_regex_counts_case_and_marks_every_place() -> None:
    matcher = parse_query(r"gate\w+ \d+", regex=True)
    assert matcher.find("gateway 12, gates 3, Gate 4") == ((0, 10), (12, 7))
    assert parse_query("x*", regex=True).find("abc") is None


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "(?P<n", "a{99999999999}"])
def test_bad_regex_says_where(pattern: str) -> None:
    with pytest.raises(BadPattern, match="can't be read"):
        parse_query(pattern, regex=True)


def test_words_of_one_message_may_be_in_several_entries() -> None:
    matcher: Matcher = parse_query("docker deploy NOT stale")
    assert matcher.holds_together(["docker", "now deploy"])
    assert not matcher.holds_together(["docker", "stale deploy"])
    assert not parse_query('"docker deploy"').holds_together(["docker", "deploy"])
