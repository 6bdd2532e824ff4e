"""Bindings and the palette, both made from the one list of commands."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider

from hermes_tui.library.commands import Command, commands_of, shown_keys
from hermes_tui.tui.desk import Desk


def bindings_for(*screens: str) -> list[Binding]:
    """The key bindings of these screens; ids let a keymap change them, tooltips tell the purpose."""
    return [
        Binding(
            command.key,
            command.action,
            command.name,
            id=command.id,
            tooltip=command.purpose,
            show=command.footer,
        )
        for screen in screens
        for command in commands_of(screen)
        if command.key
    ]


class Commands(Provider):
    """The palette: what can be done here, and everywhere."""

    def _offered(self) -> Iterable[tuple[Command, str]]:
        place = getattr(self.screen, "PLACE", "")
        for command in commands_of(place):
            if self.screen.check_action(command.action, ()) is False:
                continue
            yield command, f"screen.{command.action}"
        for command in commands_of("app"):
            if command.id not in {"app.palette", "app.back"}:
                yield command, f"app.{command.action}"

    def _title(self, command: Command) -> str:
        topic = "view" if command.screen == "app" else command.screen
        return f"{topic}: {command.name}"

    def _help(self, command: Command) -> str:
        desk: Desk = self.app.desk  # type: ignore[attr-defined]
        keys = shown_keys(command, desk.keys_of(command))
        return f"{command.purpose}  {keys}" if keys else command.purpose

    async def discover(self) -> Hits:
        """Everything, before something is typed."""
        for command, action in self._offered():
            yield DiscoveryHit(self._title(command), self._runner(action), help=self._help(command))

    async def search(self, query: str) -> Hits:
        """Commands whose name or purpose fits."""
        matcher = self.matcher(query)
        for command, action in self._offered():
            title = self._title(command)
            score = max(matcher.match(title), matcher.match(command.purpose) * 0.6)
            if score > 0:
                yield Hit(score, matcher.highlight(title), self._runner(action), help=self._help(command))

    def _runner(self, action: str) -> _Run:
        return _Run(self, action)


class _Run:
    """Runs an action on the screen the palette was opened over."""

    def __init__(self, provider: Provider, action: str) -> None:
        self._screen = provider.screen
        self._action = action

    async def __call__(self) -> None:
        await self._screen.run_action(self._action)
