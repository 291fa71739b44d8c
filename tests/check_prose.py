#!/usr/bin/env python3
"""check_prose.py ROOT -- fails if Markdown prose has a line over 100 columns or a sentence of more than 25 words.

Prose excludes code blocks, tables, headings, link definitions, images, and lines that start with "<". A line of one
word may be wider. A code span counts as one word, and each list item is separate from the text before it.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_words import tracked_files  # noqa: E402

WIDTH = 100
WORDS = 25
FENCE = re.compile(r"^\s*(```|~~~)")
NO_PROSE = re.compile(r"^\s*(\||#|\[[^\]]+\]:|<|!\[)")
LIST_ITEM = re.compile(r"^\s*([*+-]|\d+[.)])\s+")
UNBREAKABLE = re.compile(r"^\s*(?:[*+-]\s+)?\S+$")
SENTENCE_END = re.compile(r"(?<=[.!?:;])[)\"*_]*\s+(?=[A-Z0-9`\"(*\[])")


def paragraphs(text):
    """Yields (number of the first line, lines) of each paragraph and list item of prose."""
    in_code, first, lines = False, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if not lines and line.startswith("    "):
            continue  # an indented code block
        ends = fence or in_code or not line.strip() or NO_PROSE.match(line) or LIST_ITEM.match(line)
        if ends and lines:
            yield first, lines
            lines = []
        if fence:
            in_code = not in_code
        elif not in_code and line.strip() and not NO_PROSE.match(line):
            if not lines:
                first = number
            lines.append(line)
    if lines:
        yield first, lines


def words_of(sentence):
    """Returns the words of a sentence. A code span counts as one word, and the target of a link does not count."""
    sentence = re.sub(r"`[^`]*`", "code", sentence)
    sentence = re.sub(r"\]\([^)]*\)", "]", sentence)
    return re.findall(r"\S*\w\S*", sentence)


def complaints_of(text):
    """Returns [(line, complaint)] of one Markdown file."""
    found = []
    for first, lines in paragraphs(text):
        for offset, line in enumerate(lines):
            if len(line) > WIDTH and not UNBREAKABLE.match(line):
                found.append((first + offset, f"{len(line)} columns, expected at most {WIDTH}"))
        prose = LIST_ITEM.sub("", " ".join(line.strip() for line in lines))
        for sentence in SENTENCE_END.split(prose):
            count = len(words_of(sentence))
            if count > WORDS:
                start = " ".join(sentence.split()[:6])
                found.append((first, f"a sentence of {count} words, expected at most {WORDS}: \"{start} ...\""))
    return found


def check(root):
    """Returns all complaints, as 'path:line: text'."""
    pages = [name for name in tracked_files(root) if name.endswith(".md")]
    return [f"{name}:{line}: {complaint}" for name in pages
            for line, complaint in complaints_of((root / name).read_text())]


if __name__ == "__main__":
    complaints = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(complaints) or "all prose is within its limits")
    sys.exit(bool(complaints))
