"""Our dataclasses are those of the standard library, but for when their methods are made."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field

import pytest

from hermes_tui.records import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Frozen, with a default and a factory."""

    name: str
    rows: int = 3
    marks: list[str] = field(default_factory=list)


@dataclass
class Moved:
    """Open, as messages are."""

    item: int
    page: int = 0

    @property
    def both(self) -> tuple[int, int]:
        return self.item, self.page


@dataclass(slots=True)
class Count:
    done: int = 0


def made_by_the_standard_library() -> type:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Place:
        name: str
        rows: int = 3
        marks: list[str] = field(default_factory=list)

    return Place


def test_methods_are_made_at_the_first_call() -> None:
    @dataclass(frozen=True, slots=True)
    class Late:
        value: int

    before = Late.__init__
    assert Late(1) == Late(1)
    assert Late.__init__ is not before
    assert Late.__init__.__code__.co_varnames[:2] == ("self", "value")


def test_values_and_defaults() -> None:
    place = Place("home")
    assert (place.name, place.rows, place.marks) == ("home", 3, [])
    assert place.marks is not Place("home").marks
    assert Place("a", marks=["x"]).marks == ["x"]
    moved = Moved(4, page=2)
    moved.item = 5
    assert moved.both == (5, 2)
    count = Count()
    count.done += 1
    assert count == Count(1)


def test_it_looks_and_compares_as_the_standard_library_makes_it() -> None:
    usual = made_by_the_standard_library()
    assert repr(Place("a", 1)) == repr(usual("a", 1)).rpartition(">.")[2]
    assert Place("a", 1) != usual("a", 1)
    assert [one.name for one in dataclasses.fields(Place)] == [one.name for one in dataclasses.fields(usual)]
    assert Place.__match_args__ == usual.__match_args__
    assert not hasattr(Place("a"), "__dict__")
    assert dataclasses.asdict(Place("a")) == {"name": "a", "rows": 3, "marks": []}
    assert dataclasses.replace(Place("a"), rows=9) == Place("a", 9)


def test_hashes_follow_values() -> None:
    @dataclass(frozen=True, slots=True)
    class Pair:
        one: int
        other: str

    assert len({Pair(1, "a"), Pair(1, "a"), Pair(2, "a")}) == 2
    with pytest.raises(TypeError):
        hash(Moved(1))


def test_a_frozen_one_stays_as_it_is() -> None:
    place = Place("a")
    with pytest.raises(FrozenInstanceError):
        place.name = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del place.name
    assert place.name == "a"


@pytest.mark.parametrize("given", [(), ("a", 1, [], "too many")])
def test_wrong_arguments_are_told_the_first_time_too(given: tuple[object, ...]) -> None:
    @dataclass(frozen=True, slots=True)
    class Fresh:
        name: str
        rows: int = 3
        marks: list[str] = field(default_factory=list)

    with pytest.raises(TypeError, match=r"__init__\(\)"):
        Fresh(*given)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [Place("a", 2, ["x"]), Moved(1), Count(2)])
def test_it_crosses_to_another_process(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.copy(value) == value


def test_fields_of_a_base_come_first() -> None:
    @dataclass
    class Base:
        first: int

    @dataclass
    class Below(Base):
        second: int = 2

    assert (Below(1).first, Below(1).second) == (1, 2)
    assert repr(Below(1)).endswith("Below(first=1, second=2)")


def test_what_is_to_be_done_after_it_was_made_is_done() -> None:
    done: list[int] = []

    @dataclass
    class Begun:
        number: int

        def __post_init__(self) -> None:
            done.append(self.number)

    Begun(1)
    Begun(number=2)
    assert done == [1, 2]


def test_what_is_not_offered_is_refused_while_it_is_declared() -> None:
    with pytest.raises(TypeError, match="secret"):

        @dataclass
        class Hiding:
            secret: str = field(repr=False)

    with pytest.raises(TypeError, match="kept"):

        @dataclass
        class Losing:
            lost: dataclasses.InitVar[int]


def test_nothing_in_it_and_itself_in_it() -> None:
    @dataclass(frozen=True)
    class Empty:
        pass

    @dataclass
    class Node:
        down: list[object]

    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert Empty() != Node([])
    node = Node([])
    node.down.append(node)
    assert repr(node).endswith("Node(down=[...])")


def test_a_method_says_whose_it_is() -> None:
    for made in (Place, made_by_the_standard_library()):
        for name in ("__init__", "__eq__", "__hash__", "__repr__"):
            made("a")
            method = getattr(made, name)
            assert (method.__name__, method.__qualname__) == (name, f"{made.__qualname__}.{name}")
