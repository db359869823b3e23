"""Text from outside with nothing hidden in it: whatever can't be seen is shown as its escape.

Control characters, ESC, bidi marks, zero-width and other invisible characters could steer a terminal
or a page, or make one text look like another.
"""

import json
import unicodedata

DIGEST_DIGITS = 16
"""Digits of a digest that are shown and, sent back, name what was seen: a crafted input could meet fewer."""

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\U00016fe4\U0001d159")
"""Letters and marks that show as nothing, whatever their category says."""

_SELECTORS = frozenset(map(chr, (0x180B, 0x180C, 0x180D, 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Marks that choose a variant of the character before them, and show as nothing where there is none."""

_AS_EMOJI = "\ufe0f"


def visible(text: str) -> str:
    """The text on one line, with everything that can't be seen as a \\u escape (\\n and \\t for those two)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character, before) for before, character in zip(" " + text, text, strict=False))


def _shown(character: str, before: str) -> str:
    category = unicodedata.category(character)
    if character == _AS_EMOJI and unicodedata.category(before) == "So":
        return character  # it makes a symbol an emoji, and that can be seen
    blank = character in _BLANK_LETTERS or character in _SELECTORS or (category == "Zs" and character != " ")
    if not blank and category not in _HIDDEN_CATEGORIES:
        return character
    if character in "\n\t" or ord(character) > 0x7F:
        return json.dumps(character)[1:-1]
    return f"\\u{ord(character):04x}"
