"""What the Temporal UI says about a session and a cycle: Markdown for "current details", lines for summaries.

Whatever a model or a stranger wrote goes through `agent_core.markdown`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from countersign.agent_core.cycle.managing import CONVERSATION_REDUCED, CONVERSATION_RESTORED
from countersign.agent_core.json_values import canonical_json
from countersign.agent_core.markdown import code, code_block, plain, pretty
from countersign.agent_core.messages import Message
from countersign.agent_core.session import Session, views
from countersign.agent_core.shell import command_line, in_namespace
from countersign.agent_core.unknown_outcomes import ANSWER_WORDS, CALL_WORDS, RECORDED, known_of_question
from countersign.agent_core.visible import DIGEST_DIGITS
from countersign.agent_core.wire import CycleInput, CycleOutcome, Question

SHOWN_QUESTIONS = 8
URL_CHARS = 5_000
"""The UI puts the details into an address of its own, and proxies take about 8 KB of that."""

FULL = (1_500, 5)
BRIEF = (150, 2)
"""Characters of an input or a reason, and calls. What is cut says so: the person is sent to the shell to read it."""

NAME_CHARS = 100
SHOWN_REFUSALS = 3
SHOWN_ANSWERS = 4
ANSWER_CHARS = 40

CYCLE_DETAILS = (
    "The agent's cycles: model calls, hooks and tools. Questions wait in the session, the parent workflow; "
    "nothing here needs an answer."
)


def session_details(session: Session, namespace: str) -> str:
    """What a session does; if it waits: for what, since when, until when, and how to answer from a shell."""
    waiting = session.open_questions()
    lines = _waiting_lines(session, waiting, namespace) if waiting else _status_lines(session)
    return "\n".join([*lines, *_refused_lines(session)])


def _waiting_lines(session: Session, waiting: Sequence[Question], namespace: str) -> list[str]:
    count = len(waiting)
    lines = [f"### Waits for {count} answer{'s' if count > 1 else ''}"]
    for number, question in enumerate(waiting[:SHOWN_QUESTIONS], 1):
        heading = f"#### Question {number} of {count}: " if count > 1 else "#### Question "
        room = URL_CHARS - _url_chars(lines)
        lines += ["", heading + code(_cut(question.name, NAME_CHARS))]
        lines += _question_lines(session.state.session_id, question, namespace, room)
    if count > SHOWN_QUESTIONS:
        more = _command(namespace, "interrupts", session.state.session_id)
        lines += ["", f"{count - SHOWN_QUESTIONS} more are not shown here. See {more}"]
    return lines


def _question_lines(session_id: str, question: Question, namespace: str, room: int) -> list[str]:
    lines, complete = _body(question, *FULL)
    if not complete or _url_chars(lines) > room:
        lines, complete = _body(question, *BRIEF)
    until = f"open until {_moment(question.deadline)}" if question.deadline else "no deadline"
    lines += ["", f"- asked {_moment(question.asked_at)}", f"- {until}", f"- id {code(question.id)}"]
    lines += [f"- asked again: {code(_cut(question.fault, BRIEF[0]))}", ""] if question.fault else [""]
    return [*lines, *_ways_to_answer(session_id, question, namespace, complete)]


def _body(question: Question, most_chars: int, most_calls: int) -> tuple[list[str], bool]:
    """What will run and why, and whether that is all of it."""
    lines: list[str] = []
    complete = len(question.calls) <= most_calls
    does = CALL_WORDS[known_of_question(question)].capitalize()
    for call in question.calls[:most_calls]:
        block, whole = _block(call.input, most_chars)
        complete = complete and whole
        lines += ["", f"{does} {code(_cut(call.tool, NAME_CHARS))} with", "", *block]
    if len(question.calls) > most_calls:
        lines += ["", f"and {len(question.calls) - most_calls} more"]
    if question.reason is not None and [call.input for call in question.calls] != [question.reason]:
        block, whole = _block(question.reason, most_chars)
        complete = complete and whole
        lines += ["", "Reason", "", *block]
    return lines, complete


def _ways_to_answer(session_id: str, question: Question, namespace: str, complete: bool) -> list[str]:
    """Commands that are bound to what is shown here; none if it is not all shown."""
    if not complete:
        all_of_it = _command(namespace, "interrupts", session_id)
        return ["**There is more than fits here.** Read all of it in a shell before you answer:", "", f"- {all_of_it}"]
    bound = ["--digest", question.digest[:DIGEST_DIGITS]]
    if (known := known_of_question(question)) is not None:
        respond = [namespace, "respond", session_id, question.id]
        sent = {"retry": ["retry"], "skip": ["skip"], "record a result": [RECORDED, "--json-value"]}
        ways = [(words, _command(*respond, *sent[name], *bound)) for name, words in ANSWER_WORDS[known].items()]
        return ["Answer in a shell:", "", *(f"- {words}: {command}" for words, command in ways)]
    verdicts = [verdict for verdict in ("approve", "deny") if verdict in question.answers]
    commands = [_command(namespace, verdict, session_id, question.id, *bound) for verdict in verdicts]
    if not commands:
        values = [value for value in question.answers.values() if isinstance(value, str) and len(value) <= ANSWER_CHARS]
        shown = values[:SHOWN_ANSWERS] or ["VALUE"]
        commands = [_command(namespace, "respond", session_id, question.id, value, *bound) for value in shown]
    return ["Answer in a shell:", "", *(f"- {command}" for command in commands)]


def _status_lines(session: Session) -> list[str]:
    state, last = session.state, session.state.last
    word = views.public_status(session)
    lines = [f"### {'Finishes its tools, then stops' if state.stopping else word.capitalize()}", ""]
    lines += [
        f"- agent {code(state.agent)}",
        f"- turn {state.turn}, {state.cycle} cycle{'' if state.cycle == 1 else 's'} done",
    ]
    if state.since:
        lines.append(f"- {word} since {_moment(state.since)}")
    if state.prompts:
        lines.append(f"- prompts queued: {len(state.prompts)}")
    if last is not None and word != "running":
        lines.append(f"- the last turn ended with {code(last.stop_reason)}")
        if last.error is not None:
            lines += ["", "Error", "", *_block(f"{last.error.type}: {last.error.message}", FULL[0])[0]]
    return lines


def _refused_lines(session: Session) -> list[str]:
    """What was sent and refused since the session is as it is: a signal has no other way to say no."""
    since = session.state.since
    refused = [entry for entry in session.state.audit if entry.event == "refused" and entry.at >= since]
    if not refused:
        return []
    lines = ["", "Refused lately", ""]
    for entry in refused[-SHOWN_REFUSALS:]:
        text = f"{entry.detail.get('what')}: {entry.detail.get('reason')}"
        lines.append(f"- {_moment(entry.at)} {code(_cut(text, 2 * BRIEF[0]))}")
    return lines


def wait_summary(questions: int) -> str:
    """A line about the timer that runs while a session waits."""
    return f"waits for {questions} answer{'s' if questions > 1 else ''}" if questions else "waits for a prompt"


def cycle_summary(given: CycleInput) -> str:
    """A line about a cycle: its number, and the tools that it resumes or why it begins."""
    what = _tools([given.pending.message]) if given.pending else ""
    return plain(f"cycle {given.cycle} · {what or given.opens}")


def cycle_line(given: CycleInput, outcome: CycleOutcome) -> str:
    """A list item about a cycle that has ended: the tools that the model called, and how it ended."""
    tools = _tools([given.pending.message] if given.pending else outcome.messages)
    if not tools and outcome.pending is not None:
        tools = _tools([outcome.pending.message])
    ended = f"{plain(tools) + ', ' if tools else ''}ended with {code(outcome.stop_reason)}"
    lines = [entry for entry in outcome.audit if entry.event in (CONVERSATION_REDUCED, CONVERSATION_RESTORED)]
    reduced = bool(lines) and lines[-1].event == CONVERSATION_REDUCED
    cut = f", conversation reduced to {lines[-1].detail.get('left')} messages" if reduced else ""
    return f"- cycle {given.cycle}: {ended}{cut}"


def _tools(messages: Sequence[Message]) -> str:
    """Names of the tools that messages call, with how often: "delete_files ×2, list_files"."""
    names = [
        str(block["toolUse"]["name"]) for message in messages for block in message["content"] if "toolUse" in block
    ]
    counts = {name: names.count(name) for name in names}
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.items())


def _block(value: Any, most_chars: int) -> tuple[list[str], bool]:
    """A code block with a value, and whether it is all there."""
    compact = value if isinstance(value, str) else canonical_json(value)
    whole = len(compact) <= most_chars
    # Laying out a large value takes long, and this is done whenever the session wakes.
    return code_block(pretty(value) if whole else _cut(compact, most_chars)), whole


def _url_chars(lines: Sequence[str]) -> int:
    return len(quote("\n".join(lines)))


def _cut(text: str, most_chars: int) -> str:
    return text if len(text) <= most_chars else f"{text[:most_chars]}…"


def _command(namespace: str, *words: str) -> str:
    """A `countersign` command to paste into a shell, as code."""
    return code(command_line(words, in_namespace(namespace)))


def _moment(at: str) -> str:
    """A wire timestamp for people: "2026-01-02 03:04:05 UTC"."""
    try:
        return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return code(at)
