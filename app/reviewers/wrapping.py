"""Take off what says nothing of a note's worth: a tool's fields, an empty label, hard line breaks, a last pointer.

The same note with "Note:" before it, broken at 72 characters or followed by "(see `docs/cache.md`)" is no better and no
worse, so that the models never see these.
"""

import re

WRAPPED_FROM = 40
FEWEST_SPACES = 3

# Fields as YAML writes them, between two lines of dashes.
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:[\w.-]+:.*\n|[ \t]+.*\n|- .*\n|\n)+(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
# The dash of a check-box is no dash of the label.
_LABEL = re.compile(
    r"(?:[-*•] |#{1,6} ?)?[*_]{0,2}(?:[^\w\s\[(【*_#`'\"]{1,2} ?)?[\[(【]? ?"
    r"(?:notes?(?: to self)?|memory|memo|til|fyi|nb|info|remember|notiz|merke|nota|mémo|à noter|notatka|not|"
    r"заметка|メモ|备注|笔记|메모)"
    r"(?: ?[\])】][*_]{0,2} ?(?:[:：—–]|-(?! \[))?|[*_]{0,2} ?(?:[:：]|(?<=\s)[—–-](?=\s))[*_]{0,2}|[*_]{0,2} ?(?=\n))",
    re.IGNORECASE,
)
_POINTER = re.compile(
    r"[(（](?:see(?: also)?|cf\.?|siehe|vgl\.?|véase|ver|voir|cfr\.?|vedi|см\.?|zob\.?|bkz\.?|zie)\s"
    r"[^()（）\n]{1,80}[)）]\Z",
    re.IGNORECASE,
)
_BEGINS_ANEW = re.compile(r"\s*(?:[-*•#>|]|\d+[.)]|```|\w[\w ]{0,20}:)")
_ENDS = (".", "!", "?", ":", ";", "。", "！", "？", "：", "；", "```")


def unwrapped(text: str) -> str:
    """What the note says; all of it where there would be nothing left."""
    said = _without_pointer(without_label(without_front_matter(text)))
    return _rejoined(said) if "\n" in said else said


def without_front_matter(text: str) -> str:
    """The text without the fields that a tool keeps at its head; all of it where there is nothing else."""
    return _rest(_FRONT_MATTER, text)


def said_in_front_matter(text: str) -> str:
    """The sentences among the fields at a text's head; empty if there are none."""
    found = _FRONT_MATTER.match(text)
    values = [line.partition(":")[2].strip(" \"'") for line in found.group().split("\n")] if found else []
    return "\n".join(value for value in values if value.count(" ") >= FEWEST_SPACES)


def without_label(text: str) -> str:
    """The text without a word at its head that says no more than that this is a note."""
    return _rest(_LABEL, text.lstrip()).lstrip() or text


def _without_pointer(text: str) -> str:
    whole = text.rstrip()
    body = whole.removesuffix(".").removesuffix("。")
    start = max(body.rfind("("), body.rfind("（"))
    if start <= 0 or not _POINTER.match(body, start):
        return text
    said, ending = body[:start].rstrip(), whole[len(body) :]
    return said if said.endswith(_ENDS) else said + ending


def _rest(head: re.Pattern[str], text: str) -> str:
    found = head.match(text)
    return text[found.end() :] if found and text[found.end() :].strip() else text


def _rejoined(text: str) -> str:
    """The text with those lines joined that were broken for their length alone."""
    joined: list[str] = []
    room = True
    for line in text.split("\n"):
        if joined and room and line.strip() and not _BEGINS_ANEW.match(line):
            joined[-1] = f"{joined[-1].rstrip()} {line.strip()}"
        else:
            joined.append(line)
        room = len(line) >= WRAPPED_FROM and not line.rstrip().endswith(_ENDS)
    return "\n".join(joined)
