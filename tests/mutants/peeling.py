"""Which of the rules that are broken at once do the prover's lives see?

A life with all of them shows something in some of its events. What is named for these events has
been seen, and is taken out; the rest is shown to a life again, until one sees nothing. So nothing
hides behind what is seen first, and a life without a fault proves at the end that what was taken
out made all that was found. What a comparison sees is taken out one by one, since it names no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.mutants.mutants import Bundled, Mutant

COMPARISON = "comparison"
"""Stands for an event where a comparison at a life's end saw it."""
Life = Callable[[str, Sequence[Mutant]], dict[str, list[str]]]
"""A life with a lake, with some rules broken: what it saw, by the kind of event."""


class Peeling:
    """``seen`` says of each mutant's name which life saw it, in which event."""

    def __init__(self, life: Life, say: Callable[[str], None]) -> None:
        self._life, self._say = life, say
        self.seen: dict[str, str] = {}

    def peel(self, bundle: Sequence[Bundled]) -> list[str]:
        """Names that no life saw, without those that only their own test can see."""
        left = list(bundle)
        for lake in dict.fromkeys(one.lake for one in bundle):
            if whole := self._life(lake, []):
                self._say(f"{lake}: a life without a broken rule saw {_counted(whole)}")
                self._print_texts(whole)
                break
            while any(one.lake == lake for one in left) and (
                found := self._life(lake, [one.mutant for one in left])
            ):
                self._report(lake, found)
                seen = [one for one in left if one.lake == lake and one.seen_by in found]
                compared = [one for one in seen if one.seen_by == COMPARISON]
                seen = [one for one in seen if one not in compared[1:]]
                if not seen:
                    break
                self.seen |= {one.mutant.name: f"{lake}: {one.seen_by}" for one in seen}
                left = [one for one in left if one not in seen]
        return [one.mutant.name for one in left if not one.own_test]

    def _report(self, lake: str, found: dict[str, list[str]]) -> None:
        self._say(f"{lake}: seen in {_counted(found)}")
        self._print_texts(found)

    def _print_texts(self, found: dict[str, list[str]]) -> None:
        for kind, texts in found.items():
            for text in texts[:3]:
                self._say(f"    {kind}: {' '.join(text.split())[-300:]}")


def _counted(found: dict[str, list[str]]) -> str:
    return ", ".join(f"{kind} ({len(texts)})" for kind, texts in found.items())
