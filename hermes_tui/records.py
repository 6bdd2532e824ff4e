"""Dataclasses whose methods are made when one is first used.

The standard library writes and compiles up to six methods for each class while a module is imported. The 75 classes
that lie before the first list cost 90 ms that way, more than everything else the program imports, and most of their
methods are never called in a run. Here a class is declared at once, and the methods that the standard library makes
for it are made when they are first called: the same methods, later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False):
        """:func:`dataclasses.dataclass` for classes that write none of its methods themselves, and have no frozen base.

        Raises:
            TypeError: a base is frozen.
        """
        if cls is None:
            return lambda plain: _declared(plain, frozen, slots)
        return _declared(cls, frozen, slots)


def _declared(plain: Any, frozen: bool, slots: bool) -> type[Any]:
    """The class with its fields, and a stand-in for each method that is made later."""
    # Kept as it was written: the standard library takes defaults out of the class while it reads them.
    written = {name: value for name, value in vars(plain).items() if name not in {"__dict__", "__weakref__"}}
    bases = plain.__bases__

    def whole(**kinds: bool) -> type[Any]:
        told = {"__qualname__": plain.__qualname__, "__doc__": plain.__doc__}
        again: Any = type(plain)(plain.__name__, bases, {**written, **told})
        return dataclasses.dataclass(frozen=frozen, **kinds)(again)

    def compared() -> type[Any]:
        return whole(init=False)

    # Without a docstring the standard library would write one from the signature, 20 ms for the first such class.
    plain.__doc__ = plain.__doc__ or plain.__name__
    known: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(plain)
    parameters = known.__dataclass_params__
    parameters.init = parameters.repr = parameters.eq = True
    parameters.frozen = frozen
    _later(known, "__init__", lambda: whole(repr=False, eq=False))
    _later(known, "__repr__", compared)
    _later(known, "__eq__", compared)
    if frozen:
        _later(known, "__hash__", compared)
        known.__setattr__, known.__delattr__ = _no_setting, _no_deleting
        known.__getstate__, known.__setstate__ = _state, _set_state
    else:
        known.__hash__ = None
    return cast("type[Any]", known)


def _later(known: Any, name: str, whole: Callable[[], type[Any]]) -> None:
    """Put a stand-in for a method into a class; its first call puts the method there."""

    def stand_in(self: Any, *given: Any, **named: Any) -> Any:
        made = vars(whole())[name]
        setattr(known, name, made)
        return made(self, *given, **named)

    stand_in.__name__, stand_in.__qualname__ = name, f"{known.__qualname__}.{name}"
    setattr(known, name, stand_in)


def _no_setting(self: object, name: str, value: object) -> None:  # noqa: ARG001 - as Python calls it
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deleting(self: object, name: str) -> None:  # noqa: ARG001 - as Python calls it
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    """For pickle, which would set the slots of a frozen class one by one."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
