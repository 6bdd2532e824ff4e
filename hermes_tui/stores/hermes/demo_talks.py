"""The demo's conversations that hang together, and those in other scripts; our own words, one entry a talk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hermes_tui.records import dataclass

Turn = tuple[Any, ...]
"""``("u", text)`` a prompt, ``("a", text)`` a reply, ``("r", text)`` reasoning of the next reply,
``("t", tool, arguments, output)`` a call with its result."""

FABLE: Final = "claude-sonnet-4-5"
SOL: Final = "gpt-5.1"
MINI: Final = "gpt-5-mini"
DEEP: Final = "deepseek-chat"
LOCAL: Final = "hermes-4-14b"

GATEWAY: Final = "/home/mina/src/gateway"
PIPELINE: Final = "/home/mina/src/pipeline"
SITE: Final = "/home/mina/src/site"
NOTES: Final = "/home/mina/notes"


@dataclass(frozen=True, slots=True)
class Talk:
    """One session of the demo."""

    key: str
    """Names it within the demo; its id is made from it."""
    days: float
    """Days before now at which it begins."""
    turns: Sequence[Turn]
    title: str | None = None
    source: str = "cli"
    model: str = FABLE
    cwd: str | None = GATEWAY
    branch: str | None = "main"
    hit: float = 0.9
    """Share of each prompt after the first that comes from the cache."""
    context: int = 14_000
    """Tokens of the first prompt: system prompt, tools, files."""
    ended: str | None = "cli_close"
    parent: str | None = None
    config: dict[str, str] | None = None
    """Markers of branch and delegation; values name talks."""
    channel: str | None = None
    name: str | None = None
    status: str = "estimated"
    archived: bool = False
    spread: float = 240.0
    """Seconds between two turns."""


def _pytest_output() -> str:
    """A long tool output with one failure in it."""
    lines = [f"tests/unit/test_backpressure.py::test_window_{n:03d} PASSED [{n * 100 // 420:3d}%]" for n in range(420)]
    lines[287] = lines[287].replace("PASSED", "\x1b[31mFAILED\x1b[0m")
    tail = [
        "=================================== FAILURES ===================================",
        "E   AssertionError: 64 frames were queued, the window allows 32",
        "E   assert 64 <= 32",
        "tests/unit/test_backpressure.py:118: AssertionError",
        "======================== 1 failed, 419 passed in 38.21s =========================",
    ]
    return "\n".join(lines + tail)


CHAIN: Final = (
    Talk(
        "flaky-1",
        6.4,
        [
            ("u", "The gateway drops about one websocket in two hundred under load. Find out where."),
            ("t", "terminal", {"command": "rg -n 'close\\(' src/ws"}, "src/ws/session.py:88: await self.close(1011)"),
            ("r", "1011 is only sent when the send queue overflows, so look at the queue before the socket."),
            (
                "a",
                "Every drop goes through one place: `session.py:88` closes with **1011** when the send queue is "
                "full. The queue has no back-pressure, so a slow phone fills it in 400 ms.",
            ),
            ("u", "How full does it get in production?"),
            (
                "t",
                "terminal",
                {"command": "promql 'max_over_time(ws_queue_depth[1d])'"},
                "ws_queue_depth 64 (limit 64)",
            ),
            (
                "a",
                "It hits the limit of 64 exactly. Two fixes: a *bounded window per client*, or coalescing of "
                "presence updates. The window is the smaller change:\n\n```python\nclass "
                "Window:\n    def __init__(self, "
                "limit: int = 32) -> None:\n        self.limit = limit\n        self.waiting = 0\n```",
            ),
        ],
        title="One websocket in two hundred",
        ended="compression",
        hit=0.93,
    ),
    Talk(
        "flaky-2",
        6.1,
        [
            ("u", "Go with the window. Write the test first."),
            ("t", "write_file", {"path": "tests/unit/test_backpressure.py"}, '{"bytes": 4120, "created": true}'),
            ("t", "terminal", {"command": "pytest tests/unit/test_backpressure.py"}, _pytest_output()),
            (
                "a",
                "419 pass, one fails as it should: with two producers the window admits 64 frames, because both read "
                "`waiting` before either adds to it.",
            ),
            ("u", "So take the lock."),
            (
                "a",
                "A lock would serialise every send. A semaphore of 32 does the same without it: acquire before "
                "queueing, release when the frame left.",
            ),
        ],
        title="One websocket in two hundred",
        parent="flaky-1",
        ended="compression",
        hit=0.91,
    ),
    Talk(
        "flaky-3",
        5.2,
        [
            ("u", "Staging still shows drops, fewer. Why?"),
            (
                "t",
                "terminal",
                {"command": "kubectl logs deploy/gateway | grep 1011 | tail -3"},
                "client=ios/17.2 queue=32 age=31.8s\nclient=ios/17.2 queue=32 "
                "age=44.0s\nclient=ios/16.7 queue=32 age=30.2s",
            ),
            (
                "a",
                "Only iOS in the background: the socket is open, nobody reads. Those have to go; "
                "they should close with "
                "**1013** (try again later), not 1011, so that the app reconnects quietly.",
            ),
        ],
        title="One websocket in two hundred",
        parent="flaky-2",
        model=FABLE,
        ended="compression",
        hit=0.07,
        context=96_000,
    ),
    Talk(
        "flaky-4",
        5.0,
        [
            ("u", "Do that, and write down what we learned for the runbook."),
            ("t", "write_file", {"path": "docs/runbook/ws-drops.md"}, '{"bytes": 2210, "created": true}'),
            (
                "a",
                "Done. The runbook says: *1011 means our queue, 1013 means their phone.* Load test: **0 of 20,000** "
                "sockets dropped in 30 minutes.",
            ),
        ],
        title="One websocket in two hundred #2",
        parent="flaky-3",
        hit=0.92,
    ),
)

BRANCHES: Final = (
    Talk(
        "cache-design",
        4.3,
        [
            ("u", "We need a cache in front of the price service. Compare a local LRU with Redis."),
            (
                "a",
                "| | local LRU | Redis |\n|---|---|---|\n| latency | 0.2 µs | 0.4 ms |\n| shared | no | yes |\n"
                "| stale after deploy | never | possible |\n\nWith 4 replicas the local one has "
                "a hit rate of 71 %, the "
                "shared one 94 %.",
            ),
            ("u", "Assume we go local first."),
            ("a", "Then expiry matters more than size: prices change every 15 minutes, so 10,000 entries and 900 s."),
        ],
        title="Cache in front of prices",
        cwd=PIPELINE,
        ended="branched",
    ),
    Talk(
        "cache-redis",
        4.1,
        [
            ("u", "No, what would the Redis version look like?"),
            (
                "a",
                "One pipeline call per basket, `MGET` with 40 keys, a **jittered** expiry of 900 "
                "± 60 s so that the keys "
                "of one import do not all expire at once.",
            ),
        ],
        title="Cache in front of prices (Redis)",
        cwd=PIPELINE,
        parent="cache-design",
        config={"_branched_from": "cache-design"},
        model=SOL,
    ),
)

DELEGATES: Final = (
    Talk(
        "review",
        3.2,
        [
            ("u", "Review the retry branch before I merge. Look at correctness and at the docs separately."),
            (
                "t",
                "delegate_task",
                {"goal": "Correctness of src/retry.py", "context": "branch retry-jitter"},
                '{"summary": "Two findings: the wait is not capped, and ValueError is retried."}',
            ),
            (
                "t",
                "delegate_task",
                {"goal": "Docs of the retry branch"},
                '{"summary": "README still names the old flag."}',
            ),
            (
                "a",
                "Not yet. **Blocking:** waits double without a cap, so the 12th try waits 34 minutes; `ValueError` is "
                "retried though it can never pass. **Minor:** README names `--retries`, the code `--tries`.",
            ),
        ],
        title="Review of the retry branch",
        branch="retry-jitter",
    ),
    Talk(
        "review-code",
        3.19,
        [
            ("u", "Correctness of src/retry.py. Context: branch retry-jitter"),
            (
                "t",
                "read_file",
                {"path": "src/retry.py"},
                "def wait(n: int) -> float:\n    return random.uniform(0.02, 0.15) * 2**n\n",
            ),
            (
                "t",
                "delegate_task",
                {"goal": "Is there a library function that caps this?"},
                '{"summary": "None in use here."}',
            ),
            ("a", "Two findings: the wait is not capped, and ValueError is retried."),
        ],
        source="subagent",
        model=MINI,
        parent="review",
        config={"_delegate_from": "review"},
        ended="agent_close",
        context=6_000,
    ),
    Talk(
        "review-docs",
        3.185,
        [
            ("u", "Docs of the retry branch"),
            ("t", "terminal", {"command": "rg -n 'retries' README.md"}, "41:  --retries N   how often to try"),
            ("a", "README still names the old flag."),
        ],
        source="subagent",
        model=MINI,
        parent="review",
        config={"_delegate_from": "review"},
        ended="agent_close",
        context=5_000,
    ),
    Talk(
        "review-lib",
        3.18,
        [("u", "Is there a library function that caps this?"), ("a", "None in use here.")],
        source="subagent",
        model=MINI,
        parent="review-code",
        config={"_delegate_from": "review-code"},
        ended="agent_close",
        context=3_000,
    ),
)

OTHER_SCRIPTS: Final = (
    Talk(
        "korean",
        0.9,
        [
            ("u", "게이트웨이내부 로그에서 비용이 갑자기 오른 시각을 찾아줘."),
            ("t", "terminal", {"command": "jq -r .cost gateway.log | datamash max 1"}, "0.4127"),
            (
                "a",
                "14시 20분입니다. 그때 프롬프트 캐시가 한 번 비워졌고, 입력 토큰 96,000개가 다시 계산되었습니다. "
                "설정 파일을 다시 읽으면서 시스템 프롬프트의 날짜가 바뀐 것이 원인입니다.",
            ),
            ("u", "날짜를 빼면 되나?"),
            ("a", "네. 날짜를 시스템 프롬프트가 아니라 첫 사용자 메시지에 넣으면 캐시가 유지됩니다."),
        ],
        title="게이트웨이 비용 급등",
        source="telegram",
        channel="agent:main:telegram:dm:5550142",
        name="민아",
        cwd=None,
        branch=None,
        ended=None,
        hit=0.82,
    ),
    Talk(
        "japanese",
        8.6,
        [
            ("u", "履歴の検索で二文字の言葉が見つからない。検索は trigram を使っている。"),
            (
                "a",
                "trigram は三文字からしか索引を引けません。二文字の語は "
                "**bigram** の索引か、LIKE による走査が必要です。"
                "ゲートウェイのような長い語は今のままで見つかります。",
            ),
            ("u", "索引を足すといくらかかる?"),
            ("a", "本文 1 GB に対して約 0.6 GB です。LIKE なら 16 万行で 0.14 秒なので、まずは走査で足ります。"),
        ],
        title="二文字の検索",
        cwd=PIPELINE,
    ),
    Talk(
        "chinese",
        10.3,
        [
            ("u", "会话记录的索引越来越大,怎么查出是哪张表?"),
            (
                "t",
                "terminal",
                {"command": "sqlite3_analyzer state.db | head -20"},
                "messages_fts_trigram 61.4%\nmessages 22.0%",
            ),
            (
                "a",
                "是 **messages_fts_trigram**,占 61%。它把每段文字存了第二份。"
                "改成外部内容的索引以后会小一半,内部结构不变。",
            ),
        ],
        title="会话索引太大",
        source="discord",
        channel="agent:main:discord:group:ops-zh:4411",
        name="ops-zh",
        cwd=None,
        branch=None,
        ended=None,
        model=DEEP,
    ),
)
