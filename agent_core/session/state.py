"""Everything that a session is: one object, carried whole across continue-as-new."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from countersign.agent_core.audit_values import without_copies
from countersign.agent_core.conversation import SEGMENT_BYTES
from countersign.agent_core.json_values import JsonObject, JsonValue, json_size
from countersign.agent_core.messages import Message, unanswered
from countersign.agent_core.wire import (
    PROTOCOL,
    AuditEntry,
    CycleOutcome,
    ModelResponse,
    Pending,
    Piece,
    SessionOptions,
    SessionResult,
    StoredSegment,
    TurnProgress,
    Wire,
)

AUDIT_LINES = 500
REMEMBERED_UPDATES, REMEMBERED_WHOLE = 1_000, 20
"""Updates whose outcome is remembered; and those of them whose whole result is."""

SessionStatus = Literal["idle", "running", "waiting", "closed"]


class QueuedPrompt(Wire):
    """What the next invocation starts with.

    Attributes:
        messages: What is added to the conversation.
        resumes: True if it is no turn of its own: a hook goes on with it (`AfterInvocationEvent.resume`), or it is
            run again.
    """

    messages: list[Message]
    resumes: bool = False


class RememberedUpdate(Wire):
    """The outcome of an update, for a client that sends it again."""

    digest: str
    result: JsonValue = None
    late: JsonObject | None = Field(
        default=None,
        description="how its turn stopped, if it was told to ask for that: a later turn may come first",
    )

    @property
    def waits_for(self) -> int | None:
        """The turn whose result it was told to ask for."""
        turn = self.result.get("turn") if isinstance(self.result, dict) and self.result.get("moved") else None
        return turn if isinstance(turn, int) else None

    def shortened(self) -> "RememberedUpdate":
        """The same without a turn's whole result: "moved", so that the client asks for the turn."""
        if self.late is not None:
            return RememberedUpdate(digest=self.digest, result=self.result)
        if not isinstance(self.result, dict) or "stop_reason" not in self.result:
            return self
        return RememberedUpdate(digest=self.digest, result={"moved": True, "turn": self.result.get("turn", 0)})

    def unlisted(self) -> "RememberedUpdate":
        """The same without which answers were accepted: whoever sends them again says which."""
        if not isinstance(self.result, dict) or "accepted" not in self.result:
            return self
        return RememberedUpdate(digest=self.digest, result={**self.result, "accepted": []})


class SessionState(Wire):
    """A session. `pending` is set exactly while a model's message has calls without a result."""

    protocol: int = PROTOCOL
    session_id: str
    agent: str
    run: str = Field(default="", description="tells sessions apart that have had the same id, one after the other")
    options: SessionOptions = Field(default_factory=SessionOptions)
    status: SessionStatus = "idle"
    since: str = ""
    turn: int = 0
    cycle: int = 0
    model_calls: int = 0
    segments: list[Piece] = Field(default_factory=list, description="sealed, about 64 KB each, or in storage")
    tail: list[Message] = Field(default_factory=list)
    gone: int = Field(default=0, description="messages that once stood before these; so they keep their numbers")
    agent_state: JsonObject = Field(default_factory=dict)
    handlers: JsonObject = Field(default_factory=dict)
    invocation_state: JsonObject = Field(default_factory=dict)
    progress: TurnProgress = Field(default_factory=TurnProgress)
    pending: Pending | None = None
    prompts: list[QueuedPrompt] = Field(default_factory=list)
    go_on: bool = Field(default=False, description="a cycle ended with results and the next one is due")
    response: ModelResponse | None = Field(
        default=None, description="what the model has answered to a cycle that failed: for the one that goes on"
    )
    resume_due: bool = Field(
        default=False, description="an answer, an expiry or a recovery is not yet handed to a cycle"
    )
    fresh: bool = Field(default=False, description="it starts from what its agent has, and no cycle has left that yet")
    after_reset: bool = Field(default=False, description="its workflow was reset: it may repeat what it did")
    failures: int = Field(default=0, description="cycles that failed as workflows, in a row")
    stopping: bool = False
    closing: bool = False
    last: SessionResult | None = None
    audit: list[AuditEntry] = Field(default_factory=list)
    audit_dropped: int = 0
    updates: dict[str, RememberedUpdate] = Field(default_factory=dict)

    def conversation(self) -> list[Message]:
        """The messages that are here, oldest first: all of them, unless some are in storage."""
        return [message for piece in self.pieces() if not isinstance(piece, StoredSegment) for message in piece]

    def message_count(self) -> int:
        """Messages of the conversation, those in storage too."""
        return sum(piece.messages if isinstance(piece, StoredSegment) else len(piece) for piece in self.pieces())

    def pieces(self) -> list[Piece]:
        """The conversation as it travels: sealed segments, then the tail."""
        return [*self.segments, self.tail] if self.tail else [*self.segments]

    def extend(self, messages: list[Message]) -> None:
        """Add messages; seal the tail when it is long enough."""
        for message in messages:
            self.tail.append(message)
            if json_size(self.tail) >= SEGMENT_BYTES:
                self.segments.append(self.tail)
                self.tail = []

    def follow(self, outcome: CycleOutcome) -> None:
        """Take the conversation as a cycle left it."""
        self.gone = max(0, self.gone + outcome.gone)
        if outcome.pieces is not None:
            self.replace([*self.pieces()[: outcome.kept], *outcome.pieces])
        elif outcome.conversation is not None:
            self.replace([outcome.conversation])
        else:
            self.extend(outcome.messages)

    def replace(self, pieces: list[Piece]) -> None:
        """Take another conversation."""
        self.segments, self.tail = [], []
        for piece in pieces:
            if not isinstance(piece, StoredSegment):
                self.extend(piece)
                continue
            if self.tail:
                self.segments.append(self.tail)
                self.tail = []
            self.segments.append(piece)

    def put_results(self, results: Message, asking: Message) -> None:
        """Put the results of a message's calls right behind it, if it is there and has none."""
        self._behind(asking, lambda behind: [results, *behind])

    def put_behind(self, asking: Message, messages: list[Message]) -> None:
        """Let messages stand behind one whose calls have no results, in the place of whatever does.

        The message is put back if a hook has removed it.
        """
        if not self._behind(asking, lambda _: messages):
            self.extend([asking, *messages])

    def _behind(self, asking: Message, change: Callable[[list[Message]], list[Message]]) -> bool:
        pieces = self.pieces()
        stored = max((place for place, piece in enumerate(pieces, 1) if isinstance(piece, StoredSegment)), default=0)
        # What asks for tools is never in storage before it has its results.
        messages = [message for piece in pieces[stored:] if isinstance(piece, list) for message in piece]
        place = unanswered(messages, asking)
        if place is not None:
            self.replace([*pieces[:stored], messages[:place], change(messages[place:])])
        return place is not None

    def note(self, entry: AuditEntry) -> None:
        """Add a line to the audit trail; the oldest ones go."""
        self.audit.append(entry)
        surplus = len(self.audit) - AUDIT_LINES
        if surplus > 0:
            del self.audit[:surplus]
            self.audit_dropped += surplus

    def shed(self, limit_bytes: int) -> bool:
        """Make the state fit a limit if that costs only memories; conversation and questions are never touched.

        Lines of the audit trail go without copies of inputs and reasons, the oldest first; large outcomes of
        remembered updates become "moved" (their clients ask for the turn); then the oldest lines go.

        Args:
            limit_bytes: What the whole state may weigh as JSON.

        Returns:
            True if it fits.
        """
        short = {key: known.shortened() for key, known in self.updates.items()}
        return self._shed(limit_bytes, short)

    def shed_more(self, limit_bytes: int) -> bool:
        """The same, and what stands elsewhere too goes first: no session should outgrow its history for that.

        Args:
            limit_bytes: As for `shed`.

        Returns:
            True if it fits.
        """
        last, invocation_state = self.last, self.invocation_state
        if last is not None:  # `Turns.result` has these from where they stand
            self.last = last.model_copy(update={"state": {}, "interrupts": []})
        if self.pending is None and not self.go_on and not any(prompt.resumes for prompt in self.prompts):
            self.invocation_state = {}  # the next turn begins with that of the options
        short = {key: known.shortened().unlisted() for key, known in self.updates.items()}
        fits = self._shed(limit_bytes, short)
        if not fits:
            self.last, self.invocation_state = last, invocation_state
        return fits

    def _shed(self, limit_bytes: int, short: dict[str, RememberedUpdate]) -> bool:
        surplus = self._bytes() - limit_bytes
        if surplus <= 0:
            return True
        if self.model_copy(update={"updates": short, "audit": []})._bytes() > limit_bytes:
            return False  # it would not help: nothing is given away
        for place, entry in enumerate(self.audit):
            if surplus > 0:
                self.audit[place] = without_copies(entry)
                surplus -= json_size(entry.detail) - json_size(self.audit[place].detail)
        for key, known in short.items():
            if surplus > 0:
                surplus -= _weight(self.updates[key]) - _weight(known)
                self.updates[key] = known
        while surplus > 0 and self.audit:
            surplus -= json_size(self.audit.pop(0).model_dump(mode="json")) + 1
            self.audit_dropped += 1
        return self._bytes() <= limit_bytes

    def stop_with(self, result: SessionResult) -> None:
        """Keep how the loop has stopped, also for those who were told to ask for it and have not come yet."""
        self.last, kept = result, False
        for key, known in reversed(self.updates.items()):
            if known.waits_for == result.turn:  # one copy is enough
                late = None if kept else result.model_dump(mode="json")
                self.updates[key], kept = known.model_copy(update={"late": late}), True

    def late_result(self, turn: int) -> JsonObject | None:
        """How a turn stopped that is over, if somebody was told to ask for it."""
        return next((known.late for known in self.updates.values() if known.waits_for == turn and known.late), None)

    def remember(self, update_id: str, update: RememberedUpdate) -> None:
        """Keep an update's outcome; the oldest ones go, and of older ones the whole results."""
        self.updates.pop(update_id, None)
        self.updates[update_id] = update
        while len(self.updates) > REMEMBERED_UPDATES:
            del self.updates[next(iter(self.updates))]
        if len(self.updates) > REMEMBERED_WHOLE:
            older = list(self.updates)[-REMEMBERED_WHOLE - 1]
            self.updates[older] = self.updates[older].shortened()

    def _bytes(self) -> int:
        return json_size(self.model_dump(mode="json"))


def _weight(update: RememberedUpdate) -> int:
    return json_size(update.result) + json_size(update.late)
