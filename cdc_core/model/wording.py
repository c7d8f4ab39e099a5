"""How are numbers said to people?"""


def counted(number: int, noun: str) -> str:
    """``1 window``, ``1,200 windows``: a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
