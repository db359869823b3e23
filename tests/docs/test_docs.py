"""The documentation holds: its Python runs, its links lead somewhere, its tables list what the code has.

No server and no network. Blocks marked ```python run, in order and in one namespace per file, and so
do those marked ```python replace (test_shell.py puts them into a file); those marked ```python no-run
need a server: they are compiled and their imports are made.
"""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from countersign.agent_core import errors
from countersign.agent_core.answers import REFUSAL_CODES
from countersign.agent_core.interrupts import call_digest, question_digest
from countersign.agent_core.json_values import canonical_json
from countersign.agent_core.wire import AUDIT_EVENTS, Question, SessionOptions, SessionResult, ShownCall

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/**/*.md"))

_BLOCK = re.compile(r"^```(?P<mark>[^\n`]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
ENDS_NO_TURN = {
    "CountersignError", "ToolError",  # bases
    "EventLoopException", "CallbackError",  # wrap what is named instead
    "ToolInputError",  # a result for the model
    "AnswerRefused",  # its code is named instead
    "UnreadableHereError",  # fails a task, or is a refusal
    "ConcurrencyException",  # in-process only
}  # fmt: skip
"""Errors of `agent_core.errors` that no session fails with."""

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def blocks(page: Path, *marks: str) -> list[tuple[int, str]]:
    """Code blocks of a page with exactly one of these marks: (line of the first line, text)."""
    text = page.read_text()
    return [
        (text.count("\n", 0, found.start()) + 2, found["text"])
        for found in _BLOCK.finditer(text)
        if found["mark"].strip() in marks
    ]


def compiled(page: Path, line: int, text: str) -> Any:
    """A block's code, with the line numbers that it has on the page."""
    return compile("\n" * (line - 1) + text, str(page), "exec", dont_inherit=True)


def named(page: Path) -> str:
    """A page's name in test ids."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_python_blocks_run(page: Path):
    """What a reader copies from a page works, top to bottom."""
    namespace: dict[str, Any] = {"__name__": f"docs_{page.stem}"}
    for line, text in blocks(page, "python", "python replace"):
        exec(compiled(page, line, text), namespace)
    for name, value in list(namespace.items()):
        if name.startswith("test_"):  # a page may show a test; it holds, too
            value()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python no-run")], ids=named)
def test_imports_of_blocks_that_need_a_server_exist(page: Path):
    """Code that needs a server compiles, and what it imports is there."""
    for line, text in blocks(page, "python no-run"):
        compiled(page, line, text)
        body = ast.parse(text).body
        imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
        exec(compile(ast.Module([*imports], []), str(page), "exec", dont_inherit=True), {})


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_python_blocks_are_marked(page: Path):
    """No Python escapes the tests above by a mark of its own."""
    marks = {found["mark"].strip() for found in _BLOCK.finditer(page.read_text())}
    assert {mark for mark in marks if mark.startswith(("py", "Py"))} <= {"python", "python no-run", "python replace"}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_relative_links_lead_to_files_and_headings(page: Path):
    """No dead links within the repository."""
    dead = []
    for found in _LINK.finditer(_BLOCK.sub("", page.read_text())):
        target, _, heading = found["target"].partition("#")
        if ":" in target:
            continue
        linked = (page.parent / target).resolve() if target else page
        if not linked.exists() or (heading and heading not in headings(linked)):
            dead.append(found["target"])
    assert not dead


def headings(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", _BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_wire_contract_lists_every_refusal_code_with_its_meaning():
    """A client's author finds each code that can come back, and no other."""
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", section("## Updates", "An update sent again"), re.MULTILINE))
    listed = {code: meaning for code, meaning in rows.items() if code not in ("answer", "invoke", "close")}
    assert listed.keys() == REFUSAL_CODES.keys()
    assert all(meaning.startswith(REFUSAL_CODES[code]) for code, meaning in listed.items())


def test_wire_contract_lists_every_audit_event():
    """A reader of the audit trail finds what each line may be about."""
    rows = re.findall(r"^\| (`[^|]+) \|", section("### Audit events", "## Without asking"), re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(rows)) == list(AUDIT_EVENTS)


def test_wire_contract_lists_every_error_that_ends_a_turn():
    """A client's author finds the type of each failure that Countersign names itself."""
    named_there = set(re.findall(r"`(\w+)`", section("## Failures", "the name of any other exception")))
    ours = {name for name, kind in vars(errors).items() if isinstance(kind, type) and name != "Any"}
    assert ours - ENDS_NO_TURN <= named_there
    assert not ENDS_NO_TURN & named_there


@pytest.mark.parametrize(
    ("start", "end", "shape"),
    [
        ("## Start", "**Result**", SessionOptions),
        ("**Result**", "## Signals", SessionResult),
        ("### A question", "### Audit events", Question),
    ],
)
def test_wire_contract_names_every_field(start: str, end: str, shape: Any):
    """A shape does not grow behind the page's back."""
    words = set(re.findall(r"\w+", section(start, end)))
    assert set(shape.model_fields) <= words


def test_wire_contract_defines_digests_as_they_are_made():
    """A client's author can check a digest with nothing but the page."""
    page: dict[str, Any] = {"__name__": "docs_wire_contract"}
    for line, text in blocks(ROOT / "docs" / "wire-contract.md", "python"):
        exec(compiled(ROOT / "docs" / "wire-contract.md", line, text), page)
    call = page["call"]
    shown = ShownCall(index=0, tool_use_id="t", tool=call["tool"], input=call["input"])
    assert page["digest"](page["asked"]) == question_digest("payment", None, [shown])
    assert page["digest"](call) == call_digest(call["tool"], call["input"])
    hard = {"é": ['"/\\\n\x07\x7f\u2028😀', 1.0, -0.0, 1e16, 12345678901234567890, 1e-7, True], "Z": {}, "a": None}
    assert page["canonical"](hard) == canonical_json(hard)


def section(start: str, end: str) -> str:
    """The wire contract's text between two marks."""
    text = (ROOT / "docs" / "wire-contract.md").read_text()
    return text.split(start, 1)[1].split(end, 1)[0]
