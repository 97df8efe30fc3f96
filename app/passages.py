"""Cut documents into passages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 900
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^\s*(```|~~~)")


@dataclass(frozen=True)
class Cut:
    """A passage as it is cut from a document."""

    heading: str
    text: str


def passages(text: str) -> Iterator[Cut]:
    """Cut a Markdown text by headings and paragraphs, none much longer than LONGEST; fenced code is no heading."""
    heading, fenced = "", False
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if _FENCE.match(line):
            fenced = not fenced
        title = None if fenced else _HEADING.match(line)
        if title or (not line.strip() and not fenced):
            yield from _pieces(heading, block)
            block = []
            heading = title.group(2) if title else heading
        else:
            block.append(line)
    yield from _pieces(heading, block)


def _pieces(heading: str, block: list[str]) -> Iterator[Cut]:
    piece: list[str] = []
    for line in (part for whole in block for part in _short_lines(whole)):
        if piece and sum(map(len, piece)) + len(line) > LONGEST:
            yield Cut(heading, "\n".join(piece))
            piece = []
        piece.append(line)
    if piece and any(line.strip() for line in piece):
        yield Cut(heading, "\n".join(piece))


def _short_lines(line: str) -> Iterator[str]:
    while len(line) > LONGEST:
        end = line.rfind(" ", 1, LONGEST) + 1 or LONGEST
        yield line[:end].rstrip()
        line = line[end:]
    yield line
