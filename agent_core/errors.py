"""Every error of agents, turns and answers, in one tree. Other rooms add theirs to it: `ClientError`, `PayloadError`.

    CountersignError
    ├── EventLoopException            the agent loop failed; `original_exception` is the cause
    ├── CallbackError                 a hook or handler raised; `origin` names it
    ├── ModelError                    the model could not answer
    │   ├── ModelThrottledException   worth a retry, as is the next one
    │   ├── ModelUnavailableError
    │   ├── ContextWindowOverflowException
    │   ├── ModelAuthenticationError
    │   └── ModelRequestError
    ├── StepError                     a durable step that did not end
    ├── MaxTokensReachedException     the model stopped at its token limit
    ├── StructuredOutputException     the model did not hand over the object that was wanted of it
    ├── GuideLimitError               handlers kept guiding and the turn did not converge
    ├── RetryLimitError               hooks kept asking for retries
    ├── ToolError
    │   └── ToolInputError            an input that the tool's schema refuses
    ├── ConversationManagerError      a conversation manager failed; the conversation is as it was
    ├── HandlerStateError             a hook's or handler's attribute that can't be carried
    ├── PayloadTooLargeError          a value over the size limit
    ├── AgentDefinitionError          an agent, a tool or a module that can't be used as given
    ├── PolicyViolationError          a hook or handler did what may only happen in a step
    └── AnswerRefused                 an answer that changes nothing; `code` says why
    UnreadableHereError               (a ValueError too) an argument that this worker can't read, and others may
    ConcurrencyException              (a CountersignError too) the agent is already running

`InterruptException` stands outside on purpose: it is control flow, not an error, and derives
from BaseException (see `agent_core.interrupts`).
"""

import builtins
import contextlib
from typing import Any

REASON_CHARS = 500
"""The most of a refusal's words that is kept or sent: they may quote what came in."""


def reason_of(error: object) -> str:
    """An error's words, cut where they are too long to be kept."""
    text = str(error)
    return text if len(text) <= REASON_CHARS else f"{text[: REASON_CHARS - 1]}…"


class CountersignError(Exception):
    """Base of all errors of this project."""


class EventLoopException(CountersignError):
    """The agent loop failed.

    Attributes:
        original_exception: What failed.
        request_state: The invocation's `request_state` at that moment.
    """

    def __init__(self, original_exception: BaseException, request_state: Any = None) -> None:
        self.original_exception = original_exception
        self.request_state = request_state if request_state is not None else {}
        super().__init__(str(original_exception))


class CallbackError(CountersignError):
    """A hook or handler raised.

    Attributes:
        origin: The callback's name.
        cause: What it raised.
    """

    def __init__(self, origin: str, cause: BaseException) -> None:
        self.origin, self.cause = origin, cause
        super().__init__(f"{origin} raised {type(cause).__name__}: {cause}")


class ModelError(CountersignError):
    """The model could not answer."""


class ModelThrottledException(ModelError):
    """The model's service asks to slow down; worth a retry.

    Attributes:
        retry_after_s: How long the service asks to wait, in seconds; None if it names no time.
    """

    retry_after_s: float | None = None


class ModelUnavailableError(ModelError):
    """The model's service failed, broke off or can't be reached; worth a retry."""


class ContextWindowOverflowException(ModelError):
    """The conversation is longer than the model takes; a retry can't help."""


class ModelAuthenticationError(ModelError):
    """The model's service refused the credentials; a retry can't help."""


class ModelRequestError(ModelError):
    """The model's service refused the request as malformed; a retry can't help."""


class StepError(CountersignError):
    """A durable step took longer than it may, or its workers were lost too often."""


class MaxTokensReachedException(CountersignError):
    """The model stopped at its token limit in the middle of its message."""


class StructuredOutputException(CountersignError):
    """The model was asked for structured output, forced to it, and gave none that fits."""


class GuideLimitError(CountersignError):
    """Handlers returned Guide more often in one turn than the cap allows."""


class RetryLimitError(CountersignError):
    """Hooks asked for another try of one model call or tool call more often than the cap allows."""


class ConversationManagerError(CountersignError):
    """A conversation manager has no summary, or left a conversation that no model takes; it is as it was before."""


class ToolError(CountersignError):
    """A tool could not be used."""


class ToolInputError(ToolError):
    """A tool's input does not fit its schema."""


class HandlerStateError(CountersignError):
    """An attribute of a hook or handler can't be carried from cycle to cycle."""


class PayloadTooLargeError(CountersignError):
    """A value is larger than what may be sent.

    Attributes:
        what: What the value is, for a person.
        size: Its size in bytes.
        limit: The limit in bytes.
    """

    def __init__(self, what: str, size: int, limit: int) -> None:
        self.what, self.size, self.limit = what, size, limit
        super().__init__(f"{what} is {size:,} bytes; at most {limit:,} bytes can be sent")


class AgentDefinitionError(CountersignError):
    """An agent, a tool or an agent module can't be used as it is defined."""


class PolicyViolationError(CountersignError):
    """A hook or handler reached for the clock, random numbers, the environment, a file or a socket."""


class ConcurrencyException(CountersignError):
    """The agent is already running an invocation."""


class AnswerRefused(CountersignError):
    """An answer was refused whole; nothing has changed.

    Attributes:
        code: One of `REFUSAL_CODES` in `agent_core.answers`.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class UnreadableHereError(CountersignError, ValueError):
    """An argument that this worker can't read, and another one may: it has no such key, or no such blob."""


def error_named(kind: str, message: str) -> Exception:
    """The error that crossed a wire as the name of its class and its words.

    Args:
        kind: The name, like "ModelRequestError" or "PermissionError".
        message: The words.

    Returns:
        An error of this project or of Python's own, if one of that name is made of its words alone; otherwise a
        `CountersignError` of a class with that name.
    """
    known = globals().get(kind)
    if isinstance(known, type) and issubclass(known, CountersignError) and known.__init__ is CountersignError.__init__:
        return known(message)
    known = getattr(builtins, kind, None)
    control_flow = (StopIteration, StopAsyncIteration)
    if isinstance(known, type) and issubclass(known, Exception) and not issubclass(known, control_flow):
        with contextlib.suppress(TypeError):  # UnicodeDecodeError and its like are made of more
            return known(message)
    made: type[Exception] = type(kind, (CountersignError,), {})
    return made(message)
