"""The DSH home of the demo: conversations of our own, with a sub-agent, a fork, a compaction, a retry and a miss."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from hermes_tui.stores.dsh.demo_session import DemoSession

HOUR: Final = 3_600.0
DAY: Final = 24 * HOUR
_SHOP: Final = "/home/mei/code/tea-shop"
_NOTES: Final = "/home/mei/笔记/读书 2026"
_API: Final = "/home/mei/code/orders-api"


def write_demo(folder: Path, now: float) -> None:
    """Write a home whose newest conversation ended minutes ago.

    Raises:
        OSError: the folder cannot be written.
    """
    sessions = [make(now) for make in (_dark_theme, _notes, _long_migration, _cache_miss, _renamed)]
    sessions += _helpers(now)
    for session in sessions:
        path = session.write(folder)
        os.utime(path, (session.now, session.now))


def _id(number: int) -> str:
    return f"session-5d5e7a10-0000-4000-8000-{number:012d}"


def _dark_theme(now: float) -> DemoSession:
    session = DemoSession(_id(1), _SHOP, now - 2 * HOUR)
    session.begin_turn("把登录页面改成深色主题，按钮要看得清楚", after=1)
    session.title("把登录页面改成深色主题", "fallback")
    session.reply(
        1, "我先看一下现在的样式。", reasoning="先读样式表，再决定颜色变量。",
        call=("read", {"path": "web/login.css"}),
        result="body { background: #fff; color: #222; }\n.button { color: #999 }\n",
    )  # fmt: skip
    session.title("登录页面的深色主题")
    session.reply(
        2, "", call=("edit", {"path": "web/login.css", "find": "#fff", "replace": "#14161a"}), result="1 处已修改"
    )
    session.reply(3, "背景换成了 #14161a，按钮文字用 #f2f2f2，对比度 15:1。")
    session.begin_turn("手机上也看一下", after=600)
    session.reply(1, "", call=("bash", {"command": "npm run shots -- --width 390"}), result="3 张截图已保存\n")
    session.reply(2, "390 像素宽时标题会折行，我把字号改成了 clamp(18px, 5vw, 24px)。")
    return session


def _notes(now: float) -> DemoSession:
    session = DemoSession(_id(2), _NOTES, now - 3 * DAY, model="deepseek-v4-flash")
    session.begin_turn("这个文件夹里有几篇读书笔记？按月份数一下", after=1)
    session.title("按月份数读书笔记")
    session.reply(
        1, reasoning="文件名以日期开头。", call=("bash", {"command": "ls | cut -c1-7 | sort | uniq -c"}),
        result="  4 2026-08\n  7 2026-09\n  5 2026-10\n",
    )  # fmt: skip
    session.reply(2, "一共 16 篇：八月 4 篇，九月 7 篇，十月 5 篇。")
    return session


def _long_migration(now: float) -> DemoSession:
    """Grows until a compaction cuts it, in two processes."""
    session = DemoSession(_id(3), _API, now - 1.5 * DAY)
    tables = ("orders", "customers", "invoices", "payments", "refunds", "stock")
    for number, table in enumerate(tables, 1):
        session.begin_turn(f"Move the table {table} to the new schema and run its tests", after=90)
        if number == 1:
            session.title("Move tables to the new schema")
        listing = "\n".join(f"{table}.column_{column} text not null" for column in range(60))
        session.reply(1, f"Reading the columns of {table}.", call=("bash", {"command": f"\\d {table}"}), result=listing)
        session.reply(
            2, "", call=("bash", {"command": f"pytest tests/{table}"}), result=f"{10 + number} passed in 1.{number}s"
        )
        session.reply(3, f"{table} is moved; its {10 + number} tests pass.")
        if number == 4:
            session.compact("Moved so far: orders, customers, invoices, payments. Left: refunds, stock. Tests pass.")
            session.resume(20 * 60)
    return session


def _cache_miss(now: float) -> DemoSession:
    """The last answer reads nothing from the cache although nothing changed; one call had to be tried twice."""
    session = DemoSession(_id(4), _API, now - 5 * HOUR)
    session.begin_turn("Why does GET /orders take two seconds?", after=1)
    session.title("Slow GET /orders")
    session.retry()
    session.reply(
        1, reasoning="Two seconds smells like a missing index.", call=("bash", {"command": "explain analyze …"}),
        result="Seq Scan on orders  (rows=1200000)  time=1913.402 ms\n" * 6,
    )  # fmt: skip
    session.reply(2, "There is no index on orders.customer_id; every request reads 1.2 million rows.")
    session.begin_turn("Add the index, and measure again", after=70)
    session.reply(1, "", call=("bash", {"command": "psql -f add_index.sql"}), result="CREATE INDEX\n")
    session.reply(2, "With the index it takes 4 ms.", miss=True)
    return session


def _renamed(now: float) -> DemoSession:
    session = DemoSession(_id(5), _SHOP, now - 9 * DAY, model="deepseek-v4-flash")
    session.begin_turn("Write a release note for version 2.1", after=1)
    session.title("Write a release note for", "fallback")
    session.reply(1, "## 2.1\n\n- Tea of the month\n- Faster search\n- 中文地址可以正确换行了")
    session.title("Release note 2.1 / 发布说明", "user")
    return session


def _helpers(now: float) -> list[DemoSession]:
    """A conversation that starts a sub-agent, and a fork of it that only looks."""
    parent = DemoSession(_id(6), _SHOP, now - 26 * HOUR)
    child = DemoSession(
        "8f1f7c52-0000-4000-8000-000000000061", _SHOP, now - 26 * HOUR + 30, parent=parent.id, delegated=True
    )
    parent.begin_turn("Find out which pages still load jQuery, with a helper", after=1)
    parent.title("Pages that still load jQuery")
    parent.reply(
        1, "I send a helper through the templates.", call=("task", {"label": "look for jQuery"}), result=child.id
    )
    catalog = {"version": 0, "childId": child.id, "childCreatedAt": child.header["createdAt"], "mode": "continuable"}
    parent.event("subagent/catalog", {**catalog, "label": "look for jQuery"})
    _child(child)
    parent.now = max(parent.now, child.now)
    parent.reply(2, "The helper found two pages: checkout.html and about.html.")
    fork = DemoSession(
        "8f1f7c52-0000-4000-8000-000000000062", _SHOP, parent.now + 60, parent=parent.id, seeded=True, delegated=True
    )
    fork.copied_from(parent)
    fork.now = parent.now + 61
    fork.begin_turn("Is jQuery used on these pages, or only loaded?", after=1)
    fork.reply(1, "Only loaded: nothing on either page calls it.")
    return [parent, child, fork]


def _child(child: DemoSession) -> None:
    child.event(
        "subagent/descriptor", {"version": 3, "mode": "continuable", "provider": "spawn", "label": "look for jQuery"}
    )
    order = "Search every template for jQuery and name the files"
    child.begin_turn(order, after=1, extra="This order comes from the session that started you.")
    found = "templates/checkout.html:12\ntemplates/about.html:9\n"
    child.reply(1, "", call=("bash", {"command": "grep -rn jquery templates"}), result=found)
    child.reply(2, "checkout.html and about.html load it.")
    child.title("Look for jQuery")
