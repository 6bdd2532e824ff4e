"""What can be done with conversations of the list: resume, export, and every change, each by its dialog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from textual import work
from textual.message import Message

from hermes_tui.library.catalog import keys_of
from hermes_tui.library.sources import Found
from hermes_tui.text import clean_line
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.views.facets import Facets
from hermes_tui.tui.widgets.session_list import Key, SessionList, found_at

if TYPE_CHECKING:
    from hermes_tui.library.annotations import Annotation
    from hermes_tui.library.cleanup import ChangeResult
    from hermes_tui.stores.protocol import ChangeVerb


class ChangingList(Place):
    """A screen with the list of conversations, by the dialogs it opens."""

    class Pinned(Message):
        """A pin is on disk."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.facets = Facets()
        """What the list is narrowed to."""

    @property
    def rows(self) -> SessionList:
        """The list."""
        return self.query_one(SessionList)

    def show_status(self) -> None:
        """Write the status line anew."""
        raise NotImplementedError

    def chosen(self) -> list[Found]:
        """The selected conversations, those a filter hides now too, else the one under the cursor."""
        rows = self.rows
        if rows.picked:
            shown = [found_at(rows.entries[at]) for at, key in enumerate(keys_of(rows.entries)) if key in rows.picked]
            return [*shown, *self._away({(found.store.ref.name, found.session_id) for found in shown})]
        return [found_at(rows.entry)] if rows.entry is not None else []

    def _away(self, shown: set[Key]) -> list[Found]:
        library = self.desk.library
        if library is None:
            return []
        keys = sorted(self.rows.picked - shown)
        stores = {store.ref.name: store for store in library.stores}
        return [Found(stores[name], id_, library.prices) for name, id_ in keys if name in stores]

    def action_resume(self) -> None:
        from hermes_tui.tui.dialogs.resume import ResumeDialog

        if (entry := self.rows.entry) is not None:
            self.app.push_screen(ResumeDialog(found_at(entry)))

    def action_export(self) -> None:
        from hermes_tui.tui.dialogs.export import ExportDialog

        if founds := self.chosen():
            self.app.push_screen(ExportDialog(founds))

    def _change(self, verb: ChangeVerb) -> None:
        from hermes_tui.tui.dialogs.change import ChangeDialog

        if founds := self.chosen():
            self.app.push_screen(ChangeDialog(self.desk, verb, founds), self._changed)

    def _changed(self, result: ChangeResult | None) -> None:
        """What was done is no longer selected."""
        if result is not None and result.done:
            done = set(result.done)
            self.rows.picked = {key for key in self.rows.picked if key[1] not in done}
            self.rows.refresh()
            self.show_status()

    def read_annotations(self) -> object:
        """Read what people said about their conversations; in a thread."""
        raise NotImplementedError

    def _annotated_anew(self, kept: bool | None) -> None:
        if kept:
            self.read_annotations()

    def _said(self, founds: Sequence[Found]) -> list[Annotation]:
        """What was said about each."""
        from hermes_tui.library.annotations import NO_ANNOTATION

        known = self.rows.annotations
        return [known.get((found.store.ref.name, found.session_id), NO_ANNOTATION) for found in founds]

    def action_pin(self) -> None:
        if founds := self.chosen():
            self._pin(founds, "unpin" if all(one.pinned for one in self._said(founds)) else "pin")

    @work(thread=True, exclusive=True, group="pin", exit_on_error=False, description="Pinning")
    def _pin(self, founds: Sequence[Found], verb: Literal["pin", "unpin"]) -> None:
        from hermes_tui.library.annotations import annotate

        if self.desk.library is not None:
            annotate(self.desk.library, founds, verb, [], self.desk.clock())
            self.post_message(self.Pinned())

    def on_changing_list_pinned(self) -> None:
        """Show it."""
        self.read_annotations()

    def action_tags(self) -> None:
        from hermes_tui.tui.dialogs.annotate import AnnotateDialog

        if founds := self.chosen():
            # What all of them have can be changed for all; what only some have stays theirs.
            first, *others = self._said(founds)
            common = [tag for tag in first.tags if all(tag in one.tags for one in others)]
            before = " ".join(clean_line(tag) for tag in common)
            self.app.push_screen(AnnotateDialog(self.desk, founds, "tags", before), self._annotated_anew)

    def action_note(self) -> None:
        from hermes_tui.tui.dialogs.annotate import AnnotateDialog

        if founds := self.chosen():
            notes = {one.note for one in self._said(founds)}
            note = notes.pop() if len(notes) == 1 else None
            before = clean_line(note) if note else ""
            self.app.push_screen(AnnotateDialog(self.desk, founds, "note", before), self._annotated_anew)

    def action_rename(self) -> None:
        from hermes_tui.tui.dialogs.change import RenameDialog

        if (entry := self.rows.entry) is not None:
            row = self.rows.row(self.rows.cursor)
            title = clean_line(row.title) if row is not None and row.title else ""
            self.app.push_screen(RenameDialog(self.desk, found_at(entry), title))

    def action_archive(self) -> None:
        rows = self.rows
        here = rows.row(rows.cursor)
        self._change("unarchive" if here is not None and here.archived else "archive")

    def action_end(self) -> None:
        self._change("end")

    def action_clear(self) -> None:
        self._change("clear")

    def action_delete(self) -> None:
        self._change("delete")

    def action_prune(self) -> None:
        from hermes_tui.tui.dialogs.prune import PruneDialog

        self.app.push_screen(PruneDialog(self.desk, self.facets.query()), self._changed)

    def action_restore(self) -> None:
        from hermes_tui.tui.dialogs.restore import RestoreDialog

        self.app.push_screen(RestoreDialog(self.desk))
