"""How a conversation travels: in pieces. A piece is a list of messages, or a reference to some that are in storage.

What is stored is never sent again: workflows and activities pass its reference on. Only activities can read
and write storage; here it is known which messages a reference stands for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from countersign.agent_core.json_values import JsonObject, copied, json_size
from countersign.agent_core.messages import Message
from countersign.agent_core.wire import Piece, StoredRange, StoredSegment

SEGMENT_BYTES = 64_000
"""From this weight on messages become a piece of their own, which goes to storage if there is any."""

GROUP = 128
"""References that travel as one value. Whole groups never change, so that they are kept in storage once."""


class Conversation:
    """The messages of a session as a workflow holds them, and which of them are in storage.

    Args:
        contents: The pieces' messages, in order.
        references: Of those that are in storage, in order.
        unstored: Places of the pieces that are not in storage; all of them if None.
    """

    def __init__(
        self,
        contents: Sequence[Sequence[Message]],
        references: Iterable[StoredSegment] = (),
        unstored: Sequence[int] | None = None,
    ) -> None:
        self.messages: list[Message] = []
        self.has_stored = False
        self._known: dict[int, _Known] = {}
        inline, references = set(range(len(contents)) if unstored is None else unstored), iter(references)
        for place, content in enumerate(contents):
            self.messages.extend(content)
            self._learn(list(content), None if place in inline else next(references))
        self._given = self.pieces(self.messages)

    @property
    def rewritten(self) -> bool:
        """True if a hook has changed a message in its place."""
        return any(not known.is_whole() for known in self._known.values())

    def unsent_bytes(self) -> int:
        """What the session does not have yet, and is not in storage, as JSON."""
        _, pieces = self.changed()
        return sum(json_size(piece) for piece in pieces if not isinstance(piece, StoredSegment))

    def changed(self) -> tuple[int, list[Piece]]:
        """The conversation as it is now: how many of the first pieces stayed as they were, and what follows."""
        pieces = self.pieces(self.messages)
        kept = 0
        while kept < min(len(pieces), len(self._given)) and pieces[kept] is self._given[kept]:
            kept += 1
        return kept, pieces[kept:]

    def store(self, sent: Sequence[Message], ranges: Iterable[StoredRange]) -> None:
        """Note that messages are in storage now.

        Args:
            sent: The messages that were sent to whoever stored them.
            ranges: Which of them were stored.
        """
        for found in ranges:
            content = list(sent[found.start : found.start + found.segment.messages])
            if len(content) == found.segment.messages:
                self._learn(content, found.segment)

    def pieces(self, messages: Sequence[Message]) -> list[Piece]:
        """A list of messages as it travels.

        Messages are recognised by identity. What was replaced, left out or changed in its place is sent anew, with
        the rest of its piece; what is still whole keeps its reference.
        """
        found: list[Piece] = []
        fresh: list[Message] = []
        place = 0
        while place < len(messages):
            known = self._known.get(id(messages[place]))
            if known is not None and known.stands_at(messages, place):
                if fresh:
                    found.append(fresh)
                    fresh = []
                found.append(known.segment or known.content)
                place += len(known.content)
            else:
                fresh.append(messages[place])
                place += 1
        return [*found, fresh] if fresh else found

    def _learn(self, content: list[Message], segment: StoredSegment | None) -> None:
        if content:
            self.has_stored = self.has_stored or segment is not None
            self._known[id(content[0])] = _Known(content, copied(content), segment)


@dataclass(frozen=True)
class _Known:
    """A piece, and its messages as they were when it came.

    The copy shares all texts with the messages, so that comparing them costs as much as there are blocks, however
    long these are. It also keeps the messages alive: no other object gets their ids.
    """

    content: list[Message]
    before: list[Message]
    segment: StoredSegment | None

    def is_whole(self) -> bool:
        """True if nobody has changed the messages."""
        return self.content == self.before

    def stands_at(self, messages: Sequence[Message], place: int) -> bool:
        """True if these very messages stand in a list from a place on, as they were."""
        if len(self.content) > len(messages) - place:
            return False
        return all(mine is messages[place + step] for step, mine in enumerate(self.content)) and self.is_whole()


def packed(pieces: Iterable[Piece]) -> list[Any]:
    """Pieces as the arguments of a call: lists of messages, and groups of references."""
    found: list[Any] = []
    for piece in pieces:
        if not isinstance(piece, StoredSegment):
            found.append(piece)
            continue
        if not (found and isinstance(found[-1], dict) and len(found[-1]["stored"]) < GROUP):
            found.append({"stored": []})
        found[-1]["stored"].append(piece.model_dump(mode="json"))
    return found


def unpacked(arguments: Iterable[list[Message] | JsonObject]) -> list[Piece]:
    """The pieces that `packed` made arguments of."""
    found: list[Piece] = []
    for argument in arguments:
        if isinstance(argument, dict):
            found.extend(StoredSegment.model_validate(item) for item in argument["stored"])
        else:
            found.append(argument)
    return found
