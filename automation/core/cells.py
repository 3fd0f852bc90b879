"""Keeps a spreadsheet from taking a cell of a CSV file for a formula."""

STARTS = frozenset("=+-@")
APOSTROPHE = "'"


def safe(text: str) -> str:
    """The text as a cell may hold it: with an apostrophe before it where a spreadsheet would run it.

    That is where it begins with =, +, -, @ or a control character, such as a tab or the end of a line.
    """
    if text and (text[0] in STARTS or ord(text[0]) < ord(" ") or text[0] == "\x7f"):
        return APOSTROPHE + text
    return text
