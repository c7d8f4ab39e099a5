"""How do values of our own become JSON, and again themselves?

A dataclass says by its fields what its JSON form is: an object with their names. Tuples are lists,
moments ISO texts. What was written by an earlier form of a class is read as long as the fields that
are new have defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType
from typing import Any, Literal, NewType, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def as_json(value: Any) -> Any:
    """The JSON form of a value; :func:`from_json` is the inverse."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [as_json(one) for one in value]
    if isinstance(value, Mapping):
        return {name: as_json(one) for name, one in value.items()}
    if is_dataclass(value):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    return value


def from_json(kind: type[T], data: Any) -> T:
    """The value of a dataclass that has this JSON form.

    Raises:
        KeyError, TypeError, ValueError: A field is missing, unknown, or of another type.
    """
    hashable: Any = kind
    found: T = _reader(hashable)(data)
    return found


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """What reads the JSON form of a type."""
    if isinstance(kind, NewType):
        return _reader(kind.__supertype__)
    if is_dataclass(kind):
        return lambda data: _of_class(kind, data)
    if kind is datetime:
        return datetime.fromisoformat
    if kind is Any:
        return lambda data: data
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _tuple_reader(args)
    if origin is Literal:
        return lambda data: args[args.index(data)]
    if NoneType in args:
        [own] = [_reader(one) for one in args if one is not NoneType]
        return lambda data: None if data is None else own(data)
    if args:  # a mapping by names
        value = _reader(args[1])
        return lambda data: {name: value(one) for name, one in _plain(dict, data).items()}
    return lambda data: _plain(kind, data)


def _of_class(kind: Any, data: Any) -> Any:
    readers = _readers(kind)
    return kind(**{name: readers[name](value) for name, value in _plain(dict, data).items()})


@cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    return {name: _reader(one) for name, one in get_type_hints(kind).items()}


def _tuple_reader(args: tuple[Any, ...]) -> Callable[[Any], Any]:
    if args[-1] is Ellipsis:
        each = _reader(args[0])
        return lambda data: tuple(each(one) for one in _plain(list, data))
    own = [_reader(one) for one in args]
    return lambda data: tuple(read(one) for read, one in zip(own, _plain(list, data), strict=True))


def _plain(kind: type[Any], data: Any) -> Any:
    if type(data) is kind or (kind is float and type(data) is int):
        return data
    raise TypeError(f"this is no {kind.__name__}")
