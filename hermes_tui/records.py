"""Dataclasses whose methods cost nothing until they are used.

The standard library writes and compiles up to six methods for each class while a module is imported. The 75 classes
that lie before the first list cost 90 ms that way, more than everything else the program imports. Here a class is
declared at once. What compares, hashes and shows it is one function for all of its kind; only ``__init__`` is written,
when the first of its objects is made: 0.1 ms where the standard library takes 0.4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False):
        """:func:`dataclasses.dataclass` for classes that write none of its methods themselves, and have no frozen base.

        Raises:
            TypeError: a base is frozen, or a field asks for what is not offered here.
        """
        if cls is None:
            return lambda plain: _declared(plain, frozen, slots)
        return _declared(cls, frozen, slots)


class _Late:
    """Stands for what a field's factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_LATE = _Late()


def _declared(plain: Any, frozen: bool, slots: bool) -> type[Any]:
    """The class with its fields and methods, and a stand-in for the one that is written later."""
    # Without a docstring the standard library would write one from the signature, 20 ms for the first such class.
    plain.__doc__ = plain.__doc__ or plain.__name__
    known: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(plain)
    parameters = known.__dataclass_params__
    parameters.init = parameters.repr = parameters.eq = True
    parameters.frozen = frozen
    names = [field.name for field in _plain_fields(known)]
    get = attrgetter(*names) if names else _nothing
    _put(known, "__eq__", _comparing(get))
    _put(known, "__repr__", _showing(names))
    _later(known, "__init__", lambda: _init(known, frozen))
    if frozen:
        _put(known, "__hash__", _hashing(get))
        known.__setattr__, known.__delattr__ = _no_setting, _no_deleting
        known.__getstate__, known.__setstate__ = _state, _set_state
    else:
        known.__hash__ = None
    return cast("type[Any]", known)


def _plain_fields(known: Any) -> tuple[dataclasses.Field[Any], ...]:
    """The fields of a class.

    Raises:
        TypeError: one is more than a name, a type and a default.
    """
    found = dataclasses.fields(known)
    for field in found:
        if not (field.init and field.repr and field.compare and field.hash is None) or field.kw_only:
            raise TypeError(f"{known.__qualname__}.{field.name}: only defaults and factories are offered")
    kinds = {str(getattr(field, "_field_type", "")) for field in known.__dataclass_fields__.values()}
    if any("INITVAR" in kind for kind in kinds):
        raise TypeError(f"{known.__qualname__}: every field is kept")
    return found


def _put(known: Any, name: str, method: Any) -> None:
    method.__name__, method.__qualname__, method.__module__ = name, f"{known.__qualname__}.{name}", known.__module__
    setattr(known, name, method)


def _nothing(_self: object) -> tuple[()]:
    return ()


def _comparing(get: Callable[[object], object]) -> Callable[[object, object], object]:
    def equal(self: object, other: object) -> object:
        return get(self) == get(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hashing(get: Callable[[object], object]) -> Callable[[object], int]:
    def hashed(self: object) -> int:
        return hash(get(self))

    return hashed


def _showing(names: list[str]) -> Callable[[object], str]:
    def shown(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return recursive_repr()(shown)


def _later(known: Any, name: str, written: Callable[[], Any]) -> None:
    """Put a stand-in for a method into a class; its first call puts the method there."""

    def stand_in(self: Any, *given: Any, **named: Any) -> Any:
        made = written()
        _put(known, name, made)
        return made(self, *given, **named)

    _put(known, name, stand_in)


def _init(known: Any, frozen: bool) -> Any:
    """``__init__`` of a class, as one would write it by hand."""
    told: dict[str, Any] = {"_late": _LATE, "_set": object.__setattr__}
    taken, done = ["self"], []
    for field in dataclasses.fields(known):
        name = value = field.name
        if field.default is not MISSING:
            told[f"_default_{name}"] = field.default
            taken.append(f"{name}=_default_{name}")
        elif field.default_factory is not MISSING:
            told[f"_make_{name}"] = field.default_factory
            taken.append(f"{name}=_late")
            value = f"_make_{name}() if {name} is _late else {name}"
        else:
            taken.append(name)
        done.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(known, "__post_init__"):
        done.append(" self.__post_init__()")
    text = f"def __init__({', '.join(taken)}):\n" + ("\n".join(done) or " pass")
    exec(text, told)  # names of fields: Python has read them as names already
    return told["__init__"]


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
