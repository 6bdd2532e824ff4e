"""Transcripts that are awkward to resume. What the real program sent for each is in tests/data/claude/resumed.json.

tests/beside/test_claude_resume.py asks the real program again; tests/unit/claude/test_recovery.py holds us to it.
"""

from __future__ import annotations

import json
from typing import Any

from tests.unit.claude.building import IMAGE, Made

COST = "<command-name>/cost</command-name><command-message>cost</command-message><command-args></command-args>"
COMMAND = "<command-name>/x</command-name><command-message>x</command-message><command-args></command-args>"
MONEY = "<local-command-stdout>money</local-command-stdout>"
OUTPUT = "<local-command-stdout>o</local-command-stdout>"
INTERRUPTED = "[Request interrupted by user for tool use]"


def talk(name: str, turns: int = 2) -> Made:
    """Lines 1 to 2 x turns: prompt, reply, prompt, reply."""
    made = Made(name)
    for number in range(1, 2 * turns, 2):
        made.user(str(number), str(number - 1) if number > 1 else None).reply(str(number + 1), str(number))
    return made


def missing_parents() -> list[Made]:
    return [
        talk("missing-4s").user("5", "gone", dt=4000).reply("6", "5"),
        talk("missing-6s").user("5", "gone", dt=6000).reply("6", "5"),
        Made("missing-by-time").user("1", None, t=0).reply("2", "1", t=3000).reply("2b", "1", t=1000)
        .user("5", "gone", t=4000).reply("6", "5", t=4100),
        Made("missing-later-place").user("1", None, t=0).reply("2", "1", t=1000).user("5", "gone", t=4000)
        .reply("6", "5", t=4100).reply("x", "1", "LATE PLACE", t=3500).user("7", "6", t=5000),
        Made("missing-same-time").user("1", None, t=0).reply("2", "1", t=1000).reply("2b", "1", t=1000)
        .user("3", "gone", t=2000).reply("4", "3", t=2500),
        Made("missing-own-time").user("1", None, t=0).user("3", "gone", t=1000)
        .reply("2", "1", "AFTER IN FILE", t=1000).reply("4", "3", t=2500),
        Made("cycle").user("1", "3").reply("2", "1").user("3", "2").reply("4", "3"),
        Made("own-parent").user("1", None).reply("2", "1").user("3", "3").reply("4", "3"),
        talk("progress", 1).progress("p", "2").progress("q", "p").user("3", "q", dt=9000).reply("4", "3"),
        talk("progress-last").progress("p", "2"),
        talk("unknown-type", 1).add({**Made("unknown-type").fields("z", "2", 10), "type": "future-thing", "x": 1})
        .user("3", "z", dt=9000).reply("4", "3"),
    ]  # fmt: skip


def leaves() -> list[Made]:
    return [
        talk("explicit").leaf("2", explicit=True),
        talk("explicit-then-lines").leaf("2", explicit=True).user("5", "4").reply("6", "5"),
        talk("cleared").leaf(None, explicit=True),
        talk("explicit-missing").leaf("nope", explicit=True),
        talk("explicit-then-plain").leaf("2", explicit=True).leaf("4"),
        talk("cleared-then-plain").leaf(None, explicit=True).leaf("4"),
        talk("plain-mark").leaf("2"),
        talk("rewound-mark").leaf("2", rewound=True),
        talk("rewind").user("5", "2", "REWOUND").reply("6", "5"),
        talk("attachment-last").attach("x", "2"),
        talk("side-line-last", 1).system("d", "2", "turn_duration"),
    ]


def calls() -> list[Made]:
    after: dict[str, Any] = {"message": "m"}
    return [
        Made("two-calls").user("1", None).use("2", "1", **after).use("3", "2", **after).result("r3", "3", "3")
        .result("r2", "2", "2").reply("4", "r2").user("5", "4").reply("6", "5"),
        Made("two-calls-late").user("1", None).use("2", "1", **after).use("3", "2", **after).result("r2", "2", "2")
        .reply("4", "r2").result("r3", "3", "3", dt=5).user("5", "4").reply("6", "5"),
        Made("three-calls").user("1", None).use("2", "1", **after).use("3", "2", **after).use("4", "3", **after)
        .result("r4", "4", "4", t=9000).result("r2", "2", "2", t=8000).result("r3", "3", "3", t=7000)
        .reply("5", "r3", t=10000).user("6", "5").reply("7", "6"),
        Made("call-unanswered").user("1", None).use("2", "1"),
        Made("call-unanswered-later").user("1", None).use("2", "1").user("3", "2").reply("4", "3"),
        Made("call-half-answered").user("1", None).use("2", "1", **after).use("3", "2", **after)
        .result("r2", "2", "2").user("5", "r2").reply("6", "5"),
        Made("result-without-call").user("1", None).result("r", "1", "zz").reply("2", "r"),
        talk("result-twice", 1).use("3", "2").result("r", "3", "3").result("rr", "3", "3").reply("4", "rr"),
        Made("text-and-call").user("1", None).reply("2", "1", "let me", **after).use("3", "2", **after)
        .user("5", "3").reply("6", "5"),
        Made("inline-sidechain").user("1", None).use("2", "1").user("s1", None, "SIDE", side=True)
        .reply("s2", "s1", "SIDE R", side=True).result("r2", "2", "2").reply("3", "r2"),
        Made("sidechain-last").user("1", None).reply("3", "1").user("s1", None, "SIDE", side=True)
        .reply("s2", "s1", "SIDE R", side=True),
    ]  # fmt: skip


def compactions() -> list[Made]:
    def three(name: str) -> Made:
        return talk(name, 3)

    def on(made: Made, parent: str = "s") -> Made:
        return made.user("7", parent).reply("8", "7")

    again = on(three("compact-replayed").boundary("b", "6").summary("s", "b"))
    again.user("5", "4").reply("6", "5").boundary("c", "8").summary("t", "c").user("9", "6").reply("10", "9")
    two = on(three("compact-twice").boundary("b", "6", kept=["6"], segment=("6", "6")).summary("s", "b"))
    two.boundary("c", "8", kept=["8"], segment=("8", "8"), anchor="t").summary("t", "c").user("9", "t").reply("10", "9")
    plain = on(three("compact-kept-then-plain").boundary("b", "6", kept=["6"], segment=("6", "6")).summary("s", "b"))
    plain.boundary("c", "8").summary("t", "c").user("9", "t").reply("10", "9")
    fork = Made("compact-fork").boundary("b", "6", kept=["6"], segment=("6", "6")).summary("s", "b").reply("6", "s")
    parallel = Made("compact-kept-calls").user("1", None).reply("2", "1").user("3", "2").use("4", "3", message="m")
    parallel.use("5", "4", message="m").result("r4", "4", "4").result("r5", "5", "5").reply("6", "r5")
    parallel.boundary("b", "6", kept=["3", "4", "5", "r4", "r5", "6"]).summary("s", "b")
    kept: dict[str, Any] = {"kept": ["6"], "segment": ("6", "6")}
    return [
        on(three("compact").boundary("b", "6").summary("s", "b")),
        on(three("compact-kept").boundary("b", "6", kept=["5", "6"], segment=("5", "6")).summary("s", "b")),
        on(three("compact-kept-uuids").boundary("b", "6", kept=["5", "6"]).summary("s", "b")),
        on(three("compact-kept-segment").boundary("b", "6", segment=("5", "6")).summary("s", "b")),
        on(three("compact-kept-gap").boundary("b", "6", kept=["3", "6"]).summary("s", "b")),
        on(three("compact-kept-missing").boundary("b", "6", kept=["nope", "6"]).summary("s", "b")),
        on(three("compact-segment-missing").boundary("b", "6", segment=("nope", "6")).summary("s", "b")),
        on(three("compact-anchor-missing").boundary("b", "6", **kept, anchor="nope").summary("s", "b")),
        on(three("compact-anchor-boundary").boundary("b", "6", **kept, anchor="b").summary("s", "b")),
        two, plain, again, on(fork, "6"), on(parallel),
        three("compact-cut-before-summary").boundary("b", "6"),
        three("compact-cut-before-summary-kept").boundary("b", "6", **kept),
        three("compact-cut-after-summary").boundary("b", "6").summary("s", "b"),
        talk("compact-after-prompt", 1).user("3", "2").boundary("b", "3"),
        talk("compact-then-attachment", 1).boundary("b", "2").summary("s", "b").attach("x", "s"),
        on(three("compact-rewound").boundary("b", "6").summary("s", "b")).user("9", "4", "BACK").reply("10", "9"),
        on(three("compact-rewound-kept").boundary("b", "6", **kept).summary("s", "b"))
        .user("9", "4", "BACK", dt=60000).reply("10", "9"),
        on(three("compact-rewound-into-kept").boundary("b", "6", kept=["5", "6"], segment=("5", "6")).summary("s", "b"))
        .user("9", "5", "INTO").reply("10", "9"),
        Made("microcompact").user("1", None).use("2", "1").result("r2", "2", "2").reply("3", "r2")
        .system("m", "3", "microcompact_boundary").user("4", "m").reply("5", "4"),
    ]  # fmt: skip


def ends() -> list[Made]:
    error: dict[str, Any] = {"text": "API Error: 529", "model": "<synthetic>", "isApiErrorMessage": True}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
    return [
        talk("prompt-last", 1).user("3", "2"),
        talk("prompt-attachment-last", 1).user("3", "2").attach("4", "3"),
        talk("reply-attachment-last", 1).attach("3", "2"),
        talk("meta-last", 1).user("3", "2", "META", isMeta=True),
        talk("result-last", 1).user("3", "2").use("4", "3").result("r4", "4", "4"),
        talk("result-attachment-last", 1).user("3", "2").use("4", "3").result("r4", "4", "4").attach("5", "r4"),
        talk("interrupted", 1).user("3", "2").user("4", "3", "[Request interrupted by user]"),
        talk("interrupted-call", 1).user("3", "2").use("4", "3").user("5", "4", INTERRUPTED),
        talk("interrupted-result", 1).user("3", "2").use("4", "3").result("r4", "4", "4").user("5", "r4", INTERRUPTED),
        talk("error-last", 1).user("3", "2").reply("4", "3", **error),
        Made("error-between").user("1", None).reply("2", "1", **error).user("3", "2").reply("4", "3"),
        talk("command-last", 1).user("3", "2", COMMAND).user("4", "3", OUTPUT),
        talk("bash-last", 1).user("3", "2", "<bash-input>ls</bash-input>")
        .user("4", "3", "<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>"),
        talk("local-command-last", 1).system("l", "2", "local_command", COST).system("l2", "l", "local_command", MONEY),
        talk("local-command-after-prompt", 1).user("3", "2").system("4", "3", "local_command", MONEY),
        talk("notice-after-prompt", 1).user("3", "2").system("4", "3", "informational"),
        talk("thought-last", 1).user("3", "2").think("4", "3"),
        talk("thought-alone", 1).user("3", "2").think("4", "3").user("5", "4").reply("6", "5"),
        talk("thought-and-call", 1).user("3", "2").think("4", "3", message="m").use("5", "4", message="m"),
        Made("thought-and-reply").user("1", None).think("2", "1", message="m").reply("3", "2", message="m"),
        talk("blank-reply", 1).user("3", "2").reply("4", "3", "\n\n ").user("5", "4").reply("6", "5"),
        talk("blank-prompt", 1).user("3", "2", "   ").reply("4", "3"),
        talk("transcript-only", 1).user("3", "2", "VIS", isVisibleInTranscriptOnly=True).user("4", "3").reply("5", "4"),
        Made("picture").user("1", None, [{"type": "text", "text": "look"}, picture]).reply("2", "1"),
    ]  # fmt: skip


def damage() -> list[Made]:
    def six(name: str) -> Made:
        return talk(name, 3)

    made: list[Made] = []

    def line(name: str, change: Any) -> None:
        it = six(name)
        it.lines[2] = change(it.lines[2])
        made.append(it)

    glued, half, three = six("glued"), six("half"), six("three-glued")
    glued.lines[2:4] = [glued.lines[2] + glued.lines[3]]
    half.lines[2:4] = [half.lines[2][: len(half.lines[2]) // 2] + half.lines[3]]
    three.lines[2:5] = [three.lines[2] + " " + three.lines[3] + three.lines[4]]
    tail = six("torn-tail")
    tail.lines[5] = tail.lines[5][:80]
    start = six("mark-at-start")
    start.lines[0], start.lines[1] = "\ufeff" + start.lines[0], start.lines[1] + "\r"
    twice = six("same-lines-again")
    twice.raw(twice.lines[2]).raw(twice.lines[3])
    other = talk("same-uuid-other-text").user("3", "1", "P 3 again").user("5", "4").reply("6", "5")
    nameless = talk("no-uuid", 1)
    nameless.add({"type": "user", "message": {"role": "user", "content": "NO UUID"}, "sessionId": nameless.id})
    nameless.user("3", "2").reply("4", "3")
    strange = talk("other-id-inside")
    strange.lines = [text.replace(strange.id, "11111111-2222-3333-4444-555555555555") for text in strange.lines]
    odd = talk("odd-lines", 1).raw("[1,2]").raw('"x"').raw('{"type":"new-thing","uuid":"zz"}').raw("{broken").raw("5")
    odd.user("3", "2").reply("4", "3")
    line("garbage-behind", lambda text: text + "xyz")
    line("half-behind", lambda text: text + text[:50])
    line("nul-behind", lambda text: text + "\0\0\0")
    line("nul-before", lambda text: "\0\0\0" + text)
    line("number-before", lambda text: "5" + text)
    line("mark-inside", lambda text: "\ufeff" + text)
    line("array", lambda text: "[" + text + "]")
    line("not-a-number", lambda text: text.replace('"P 3"', '"P 3", "x": NaN'))
    line("huge-number", lambda text: text.replace('"P 3"', '"P 3", "n": 123456789012345678901234567890'))
    line("no-time", lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "timestamp"}))
    return [*made, glued, half, three, tail, start, twice, other, nameless, strange, odd]


def refused() -> list[Made]:
    """Transcripts the real program refuses to resume."""
    nothing = talk("null-line", 1).raw("null").user("3", "2").reply("4", "3")
    bare = talk("no-message")
    bare.lines[2] = json.dumps({k: v for k, v in json.loads(bare.lines[2]).items() if k != "message"})
    empty = Made("no-lines").add({"type": "custom-title", "customTitle": "Only a title", "sessionId": "x"})
    return [nothing, bare, empty]


def resumable() -> list[Made]:
    return [*missing_parents(), *leaves(), *calls(), *compactions(), *ends(), *damage()]
