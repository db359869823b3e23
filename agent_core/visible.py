"""Text from outside with nothing hidden in it: whatever can't be seen is shown as its escape.

Control characters, ESC, bidi marks, zero-width and other invisible characters could steer a terminal
or a page, or make one text look like another.
"""

import json
import unicodedata

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
"""Letters and marks that show as nothing, whatever their category says."""


def visible(text: str) -> str:
    """The text on one line, with everything that can't be seen as a \\u escape (\\n and \\t for those two)."""
    return text if text.isascii() and text.isprintable() else "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    blank = character in _BLANK_LETTERS or (category == "Zs" and character != " ")
    if not blank and category not in _HIDDEN_CATEGORIES:
        return character
    if character in "\n\t" or ord(character) > 0x7F:
        return json.dumps(character)[1:-1]
    return f"\\u{ord(character):04x}"
