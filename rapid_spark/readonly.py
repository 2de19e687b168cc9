"""Tell a statement that only reads from one that could change something."""

from __future__ import annotations

import re

READS = ("SELECT", "WITH", "DESCRIBE", "DESC", "SHOW", "EXPLAIN")
TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
      | (?P<text>[rR]?'(?:\\.|[^'\\])*'|[rR]?"(?:\\.|[^"\\])*")
      | (?P<name>`(?:``|[^`])*`)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark>\S)""",
    re.VERBOSE | re.DOTALL,
)
# Functions that run code of the Java machine.
CODE = ("REFLECT", "TRY_REFLECT", "JAVA_METHOD")


def fault(sql: str) -> str | None:
    """Why a text is not one statement that only reads; None when it is one."""
    tokens = [(m.lastgroup, m.group()) for m in TOKEN.finditer(sql) if m.lastgroup != "comment"]
    while tokens and tokens[-1] == ("mark", ";"):
        tokens.pop()
    if not tokens:
        return "there is no statement"
    if ("mark", ";") in tokens:
        return "only one statement at a time"
    words = [(kind, text.upper()) for kind, text in tokens]
    first = words[0][1]
    if words[0][0] != "word" or first not in READS:
        return f"{tokens[0][1][:20]} may change something; reads start with {', '.join(READS)}"
    for (kind, word), (next_kind, following) in zip(words, [*words[1:], (None, "")], strict=True):
        if kind in ("word", "name") and word.strip("`") in CODE and following == "(":
            return f"{word.strip('`').lower()} runs code"
        if (kind, word, next_kind) == ("word", "USING", "text"):
            return "TRANSFORM ... USING runs a program"
    if first == "WITH" and _main_verb(words) != "SELECT":
        return "WITH may only lead to a SELECT"
    return None


def _main_verb(words: list[tuple[str | None, str]]) -> str | None:
    """The first word after the last common table expression: not within parentheses, after a closing one."""
    depth, closed = 0, False
    for kind, text in words[1:]:
        if kind == "mark" and text in "()":
            depth += 1 if text == "(" else -1
            closed = text == ")"
        elif depth == 0 and closed and kind == "word" and text != "AS":
            return text
        elif depth == 0 and kind == "mark":
            closed = False
    return None
