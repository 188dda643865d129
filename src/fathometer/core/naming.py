"""Naming: how an unknown name is answered with the nearest right one."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause to end an error message with: the likeliest meant name, else all that exist."""
    known = sorted(known)
    by_folded = {each.casefold(): each for each in known}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean {by_folded[close[0]]!r}?"
    if not known:
        return "there are none."
    return "known: " + ", ".join(known) + "."


def camel_case(stem: str) -> str:
    """The class that a module is named after: ``in_context_qa`` holds ``InContextQa``."""
    return "".join(part.capitalize() for part in stem.split("_"))
