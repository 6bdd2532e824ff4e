from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.library.redaction import HELD_BACK, redact, redact_pieces, redact_values

SECRETS = [
    "sk-ant-api03-abcdefghijklmnop", "ghp_abcdefghijklmnopqrstuv0123", "glpat-abcdefghij0123456789",
    "xoxb-1234567890-abcdef", "AKIAABCDEFGHIJKLMNOP", "AIzaSyA0123456789012345678901234567890",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh",
]  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
def test_keys_and_tokens(secret: str) -> None:
    assert secret not in redact(f"use {secret}, please")
    assert redact(f"use {secret}, please").startswith("use [")


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("write to ana.kim+x@mail.example.org now", "write to [e-mail] now"),
        ("/home/ana/code and /Users/ana/code", "/home/[user]/code and /Users/[user]/code"),
        (r"C:\Users\ana\code", r"C:\Users\[user]\code"),
        (r'"C:\\Users\\ana\\code"', r'"C:\\Users\\[user]\\code"'),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [token]"),
        ("postgres://ana:hunter22@db/x", "postgres://ana:[password]@db/x"),
        ("export MY_API_KEY=verysecret1", "export MY_API_KEY=[secret]"),
        ('{"password": "hunter22"}', '{"password": "[secret]"}'),
        (r'{"a": "{\"api_key\": \"verysecret1\"}"}', r'{"a": "{\"api_key\": \"[secret]\"}"}'),
        (r'"{\\\"secret\\\": \\\"very secret\\\"}"', r'"{\\\"secret\\\": \\\"[secret] secret\\\"}"'),
        (r"C:\\\\Users\\\\ana\\\\code", r"C:\\\\Users\\\\[user]\\\\code"),
        ("/x/projects/-home-ana-code/a.jsonl", "/x/projects/-home-[user]-code/a.jsonl"),
        ("sessions/--Users-ana-code--/s", "sessions/--Users-[user]-code--/s"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "[private key]"),
    ],
)
def test_what_is_taken_out(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "the task sk-1",
        "a @ b",
        "see /home and /srv/app",
        "token count 12",
        "비밀번호 없음",
        "take-home-pay",
        r"secret: a\"b",
    ],
)
def test_what_stays(text: str) -> None:
    assert redact(text) == text


def test_every_text_of_a_value() -> None:
    assert redact_values({"cwd": "/home/ana", "list": ["a@b.example", 1, None]}) == {
        "cwd": "/home/[user]",
        "list": ["[e-mail]", 1, None],
    }


@given(st.integers(0, 4 * HELD_BACK), st.integers(1, 5_000), st.sampled_from(SECRETS))
def test_a_secret_on_a_seam_is_seen_whole(before: int, size: int, secret: str) -> None:
    text = "ab " * (before // 3) + secret + " cd" * HELD_BACK
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    joined = "".join(redact_pieces(pieces))
    assert secret not in joined
    assert joined == redact(text)
