"""The door hands out values and itself: nobody outside reaches the metadata store, the lake or a session through it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, cast, get_args, get_type_hints

import pytest

from cdc_core.config import SourceConfig
from cdc_core.state.database import Database
from cdc_core.state.store import Store
from cdc_core.steps import Pipeline, delta_logs, source_checks
from cdc_core.steps.source_view import SourceView

VALUES = ("builtins", "cdc_core.config", "cdc_core.model", "cdc_core.steps")
OF_PYTHON = ("collections", "contextlib", "datetime", "types", "typing")


def functions(place: object) -> Iterator[Callable[..., Any]]:
    """The public functions, methods and properties of a class or module; of an object, those that it was given too."""
    own = {} if isinstance(place, type | ModuleType) else vars(type(place))
    for name, member in {**own, **vars(place)}.items():
        if name.startswith("_"):
            continue
        found: Any = member.fget if isinstance(member, property) else member
        is_given = inspect.ismethod(found) and not inspect.isclass(found.__self__)
        if is_given or (
            inspect.isfunction(found) and found.__module__.startswith("cdc_core.steps")
        ):
            yield found


def classes(annotation: Any) -> Iterator[type]:
    """Every class that an annotation names."""
    for part in get_args(annotation):
        yield from classes(part)
    if inspect.isclass(annotation) and not get_args(annotation):
        yield annotation


VIEW = SourceView(Store(cast("Database", None), "src"), cast("SourceConfig", None))


@pytest.mark.parametrize("place", [Pipeline, VIEW, delta_logs, source_checks])
def test_results_of_the_door_are_values(place: object) -> None:
    results = {
        (function.__name__, one.__module__)
        for function in functions(place)
        for one in classes(get_type_hints(function).get("return"))
    }
    allowed = (*VALUES, *OF_PYTHON)
    strange = [(name, module) for name, module in results if not module.startswith(allowed)]
    assert results
    assert strange == []
