"""The demo's single conversations and the second profile."""

from __future__ import annotations

from typing import Final

from hermes_tui.stores.hermes.demo_talks import DEEP, FABLE, GATEWAY, LOCAL, MINI, NOTES, PIPELINE, SITE, SOL, Talk


def _disk_usage() -> str:
    rows = [(f"/var/lib/pipeline/spool/2{n:03d}.seg", 512 - n % 7) for n in range(1200)]
    return "\n".join(f"{size}M\t{name}" for name, size in rows) + "\n614G\t/var/lib/pipeline/spool"


SPECIAL: Final = (
    Talk(
        "unfinished",
        0.02,
        [
            ("u", "Port the importer to the streaming parser. Start with the tests."),
            ("t", "terminal", {"command": "pytest -q tests/importer"}, "37 passed, 4 skipped in 6.10s"),
            ("r", "The four skipped ones need a 2 GB file; leave them."),
            ("a", "Baseline is green. I will move `read_all` to a generator and keep the old name as a thin wrapper."),
            ("u", "Go on."),
        ],
        title="Streaming importer",
        cwd=PIPELINE,
        branch="streaming",
        ended=None,
        hit=0.94,
    ),
    Talk(
        "models",
        2.2,
        [
            ("u", "Why is the chart of the landing page blurry on phones? Screenshot attached."),
            ("image", "This is what I see.", "image/png"),
            ("a", "The canvas is drawn at CSS size and scaled up. Set `canvas.width = rect.width * devicePixelRatio`."),
            ("u", "/model gpt-5.1"),
            ("u", "Now make the labels fit below 360 px."),
            (
                "a",
                "Labels rotate below 420 px and every second one goes below 360 px. The legend moves under the chart.",
            ),
        ],
        title="Blurry chart on phones",
        cwd=SITE,
        branch="chart",
        hit=0.6,
    ),
    Talk(
        "spool",
        7.5,
        [
            ("u", "The spool disk is full again. What fills it?"),
            ("t", "terminal", {"command": "du -m /var/lib/pipeline/spool/*"}, _disk_usage()),
            (
                "a",
                "1,200 segments of 512 MB: **614 GB**. Acknowledged ones are never removed, "
                "because the reaper compares "
                "host names and the machine was renamed.",
            ),
        ],
        title="Spool disk is full",
        cwd=PIPELINE,
        status="actual",
    ),
    Talk(
        "included",
        12.4,
        [
            ("u", "Rewrite this paragraph for people who have never seen a flame graph."),
            (
                "a",
                "A flame graph shows where time goes: the wider a bar, the longer it took; what stands on a bar was "
                "called by it.",
            ),
        ],
        title="Flame graphs for everybody",
        cwd=NOTES,
        branch=None,
        model="gpt-5-codex",
        status="included",
    ),
    Talk(
        "local",
        15.2,
        [
            ("u", "Summarise the meeting notes, locally please."),
            ("a", "Three decisions: freeze on the 12th, the importer goes first, no weekend deploys."),
        ],
        title="Meeting notes, kept at home",
        cwd=NOTES,
        branch=None,
        model=LOCAL,
        status="unknown",
    ),
    Talk(
        "tool",
        1.7,
        [("u", "hermes sessions export --format json"), ("a", "Exported 12 sessions.")],
        source="tool",
        cwd=None,
        branch=None,
        model=MINI,
    ),
    Talk(
        "digest-1",
        1.3,
        [("u", "Write the morning digest."), ("a", "Deploys: 3, all green. Alerts: one, the spool disk at 91 %.")],
        source="cron",
        cwd=None,
        branch=None,
        model=MINI,
        ended="cron_complete",
    ),
    Talk(
        "digest-2",
        0.3,
        [
            ("u", "Write the morning digest."),
            ("a", "Deploys: 1. Alerts: none. Spend yesterday: 4.12 USD, 88 % cached."),
        ],
        source="cron",
        cwd=None,
        branch=None,
        model=MINI,
        ended="cron_complete",
    ),
    Talk(
        "old-rewrite",
        96.0,
        [
            ("u", "Should we rewrite the scheduler in Rust?"),
            ("a", "No. It is idle 98 % of the time; what hurts is one query without an index."),
        ],
        title="Rewrite the scheduler?",
        cwd=PIPELINE,
        archived=True,
    ),
    Talk(
        "old-idea",
        130.0,
        [("u", "Names for the new service?"), ("a", "Ferry, Lock, Pilot. Pilot says best what it does.")],
        title="Names",
        cwd=NOTES,
        branch=None,
        archived=True,
        model=DEEP,
    ),
    Talk(
        "never-closed",
        140.0,
        [
            ("u", "What does EXPLAIN say about the slow query?"),
            ("a", "A full scan of 1.2 million rows; an index on `(tenant, created)` makes it 40 rows."),
        ],
        title="The slow query",
        cwd=PIPELINE,
        ended=None,
    ),
)

INPLACE: Final = Talk(
    "inplace",
    2.9,
    [
        ("u", "Plan the migration of the billing tables. Nothing may be down for more than a minute."),
        ("a", "Four steps: add columns, write both, backfill in batches of 5,000, read new. Each can be undone."),
        ("u", "Estimate the backfill."),
        ("t", "terminal", {"command": "psql -c 'select count(*) from invoice'"}, " count\n---------\n 8412077"),
        ("a", "8.4 million rows at 5,000 a batch and 40 ms a batch: **68 seconds** of work, an hour with pauses."),
        ("u", "Write the batch query."),
        (
            "a",
            "```sql\nUPDATE invoice SET total_minor = round(total * 100)\nWHERE id IN (SELECT id FROM invoice WHERE "
            "total_minor IS NULL ORDER BY id LIMIT 5000 FOR UPDATE SKIP LOCKED);\n```",
        ),
        ("u", "And if it stops in the middle?"),
        ("a", "It goes on where it stopped: the condition finds what is left, and nothing is done twice."),
    ],
    title="Billing migration without a pause",
    cwd=PIPELINE,
    hit=0.95,
)

_SMALL: Final[tuple[tuple[float, str, str, str, str, str], ...]] = (
    (
        0.4,
        "Why does the build take nine minutes?",
        "The image is rebuilt from scratch: `COPY . .` stands above "
        "`pip install`, so every commit throws the layer away. Moved: 70 seconds.",
        "Fix Docker Build",
        GATEWAY,
        FABLE,
    ),
    (
        1.1,
        "The build is slow again since the last merge.",
        "The lock file is copied with the sources once more. A test that greps the Dockerfile will keep it apart.",
        "Fix Docker Build #2",
        GATEWAY,
        FABLE,
    ),
    (
        1.9,
        "Make the error page say something useful.",
        "It now names the request id, when to try again and whom to ask; no stack trace.",
        "An error page for people",
        SITE,
        SOL,
    ),
    (
        3.6,
        "Is our TLS setup fine?",
        "Yes: 1.2 and 1.3 only. The certificate expires in 11 days and renewal is not scheduled.",
        "TLS check",
        GATEWAY,
        MINI,
    ),
    (
        4.8,
        "Explain the difference between p99 and max to my boss.",
        "p99 is the slowest of the ordinary; max is the "
        "worst day of the year. Promise the first, look into the second.",
        "p99 and max",
        NOTES,
        MINI,
    ),
    (
        5.7,
        "Write a regular expression for our order numbers.",
        "`^[A-Z]{2}-\\d{4}-\\d{6}$`, and please test the check digit in code: it cannot be done here.",
        "Order numbers",
        PIPELINE,
        DEEP,
    ),
    (
        6.9,
        "What happens if two importers run at once?",
        "Both read the same marker and import the day twice. A lease row with an expiry keeps the second out.",
        "Two importers",
        PIPELINE,
        SOL,
    ),
    (
        9.2,
        "Name three ways to lose data with a queue.",
        "Acknowledge before writing, write before the transaction, and trust the retry of somebody else.",
        "Three ways to lose data",
        NOTES,
        FABLE,
    ),
    (
        11.5,
        "Turn this bash script into Python.",
        "Done, 40 lines; `set -e` became exceptions, and the temporary folder is removed now also when it fails.",
        "From bash to Python",
        PIPELINE,
        DEEP,
    ),
    (
        13.7,
        "How do I find the commit that broke the chart?",
        "`git bisect run npm test -- chart`: 7 steps for 110 commits. It was the upgrade of the time zone table.",
        "Bisect the chart",
        SITE,
        FABLE,
    ),
    (
        18.1,
        "Do we need an index on created_at?",
        "For the report yes, for the import no: put it on the replica only.",
        "Index on created_at",
        PIPELINE,
        SOL,
    ),
    (
        21.4,
        "Draft the incident report.",
        "Drafted: 42 minutes, 1,204 requests lost, cause and three measures. It blames nobody.",
        "Incident of the 8th",
        NOTES,
        FABLE,
    ),
    (
        26.0,
        "Why is CI red only on Mondays?",
        "A test compares weekdays with a fixed locale; on Mondays the name has six letters more in German.",
        "Red on Mondays",
        SITE,
        MINI,
    ),
    (
        33.5,
        "Check the backup restore.",
        "Restored to a scratch machine in 14 minutes; the row counts agree, the permissions of two files do not.",
        "Restore drill",
        PIPELINE,
        FABLE,
    ),
    (
        47.2,
        "Explain vector clocks with a kitchen.",
        "Everybody keeps a slip with how often each cook has stirred. Two "
        "slips that disagree both ways mean two soups.",
        "Vector clocks in the kitchen",
        NOTES,
        DEEP,
    ),
    (
        61.0,
        "Find dead code in the gateway.",
        "Eleven functions nobody calls, two of them only kept alive by their own tests.",
        "Dead code",
        GATEWAY,
        SOL,
    ),
    (
        88.0,
        "Which of our dependencies are unmaintained?",
        "Four. One matters: the websocket library had its last release three years ago.",
        "Unmaintained dependencies",
        GATEWAY,
        MINI,
    ),
)

SMALL: Final = tuple(
    Talk(
        f"small-{n}",
        days,
        [("u", question), ("a", answer)],
        title=title,
        cwd=cwd,
        model=model,
        branch=None if cwd == NOTES else "main",
    )
    for n, (days, question, answer, title, cwd, model) in enumerate(_SMALL)
)

SALES: Final = (
    Talk(
        "lead",
        0.6,
        [
            ("u", "A lead asks for a quote: 40 seats, two years, support in Korean. 견적을 부탁합니다."),
            ("t", "web_extract", {"url": "https://example.com/pricing"}, "Team: 14 USD a seat and month"),
            (
                "a",
                "40 × 24 × 14 = **13,440 USD**; two years take 15 % off: **11,424 USD**. "
                "한국어 지원은 포함되어 있습니다.",
            ),
        ],
        title="Quote for 40 seats",
        source="telegram",
        channel="agent:main:telegram:dm:5550199",
        name="A. Lindqvist",
        cwd=None,
        branch=None,
        ended=None,
        model=SOL,
    ),
    Talk(
        "renewal-1",
        16.0,
        [
            ("u", "List the renewals of this quarter with what could go wrong."),
            ("a", "Nine renewals. Two are at risk: one uses a tenth of its seats, one has an open ticket since March."),
        ],
        title="Renewals of the quarter",
        cwd="/home/mina/sales",
        branch=None,
        ended="compression",
    ),
    Talk(
        "renewal-2",
        15.6,
        [
            ("u", "Write to the one with the open ticket."),
            ("a", "Written: it opens with the ticket, not with the invoice."),
        ],
        title="Renewals of the quarter #2",
        cwd="/home/mina/sales",
        branch=None,
        parent="renewal-1",
        hit=0.4,
    ),
    Talk(
        "sales-cron",
        1.0,
        [("u", "Weekly pipeline report."), ("a", "Open: 14 leads, 61,200 USD. Moved this week: 3. Nothing overdue.")],
        source="cron",
        cwd=None,
        branch=None,
        model=MINI,
        ended="cron_complete",
    ),
    Talk(
        "slides",
        40.0,
        [
            ("u", "Five slides on why caching saves money."),
            ("a", "Slide 1: one sentence sent twice costs twice. Slide 2: unless the first 90 % are the same…"),
        ],
        title="Five slides on caching",
        cwd="/home/mina/sales",
        branch=None,
        model=DEEP,
    ),
)
