"""What is written down of a tool's input is what runs, on every worker and each time; or there is no such tool."""

import dataclasses
import uuid
from datetime import datetime
from typing import NamedTuple

import pytest
from pydantic import BaseModel, Field, Secret, SecretBytes, SecretStr, field_serializer
from typing_extensions import TypedDict

from countersign import Agent, ScriptedModel, tool
from countersign.agent_core.json_values import canonical_json, check_json
from countersign.agent_core.tools.fidelity import in_order
from countersign.errors import AgentDefinitionError, ToolInputError
from countersign.models import calls

LETTERS = list("abcdefghijkl")


def taking(kind):
    """A tool with one parameter of that type."""

    def act(what) -> None:
        """Act."""

    act.__annotations__["what"] = kind
    return tool(act)


class Tags(BaseModel):
    model_config = {"frozen": True}
    names: frozenset[str] = Field(alias="Names")


@dataclasses.dataclass
class Marked:
    names: set[str]


class Pair(NamedTuple):
    first: set[str]
    second: int


class Typed(TypedDict):
    names: set[str]


NESTED = [
    (set[str], LETTERS),
    (frozenset[str] | None, LETTERS),
    (list[set[str]], [LETTERS]),
    (dict[int, set[str]], {"7": LETTERS}),
    (tuple[set[str], int], [LETTERS, 1]),
    (set[frozenset[str]], [["a"], LETTERS]),
    (Tags, {"Names": LETTERS}),
    (set[Tags], [{"Names": ["z"]}, {"Names": LETTERS}]),
    (list[Marked], [{"names": LETTERS}]),
    (Pair, [LETTERS, 1]),
    (Typed, {"names": LETTERS}),
]


@pytest.mark.parametrize(("kind", "given"), NESTED, ids=[str(kind) for kind, _ in NESTED])
def test_a_set_is_written_in_one_order(kind, given):
    """Wherever it stands: Python's own order is another one in each process, and no approval would outlive it."""

    act = taking(kind)
    shown = act.canonical_input({"what": given})["what"]
    assert canonical_json(LETTERS) in canonical_json(shown)
    assert act.canonical_input({"what": shown}) == {"what": shown}


def test_the_body_gets_a_set():
    """Only what is written down is in order."""
    got = []

    @tool
    def act(names: set[str]) -> None:
        """Act."""
        got.append(names)

    Agent(ScriptedModel([calls(("act", {"names": ["b", "a", "b"]})), "done"]), tools=[act])("go")
    assert got == [{"a", "b"}]


def test_what_a_serializer_made_another_shape_of_stays():
    """The order of a text or of a shorter list is not ours to choose."""
    assert (in_order({"b", "a"}, "b,a"), in_order({"b", "a"}, ["c"])) == ("b,a", ["c"])


class Row(BaseModel):
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)


class Stamped(BaseModel):
    at: datetime = Field(default_factory=datetime.now)


@dataclasses.dataclass
class Numbered:
    id: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)


@pytest.mark.parametrize(
    ("kind", "name"), [(Row, "Row.id"), (list[Stamped], "Stamped.at"), (Numbered | None, "Numbered.id")]
)
def test_a_default_that_is_another_one_each_time_makes_no_tool(kind, name):
    """What was approved would never be what runs."""
    with pytest.raises(AgentDefinitionError, match=f"tool act: the default of {name} is another one each time"):
        assert taking(kind).tool_spec


class Listed(BaseModel):
    names: list[str] = Field(default_factory=list)


def test_a_default_that_is_made_alike_each_time_is_fine():
    """An empty list is the usual one."""

    @tool
    def insert(rows: Listed) -> None:
        """Insert."""

    assert insert.canonical_input({"rows": {}}) == {"rows": {"names": []}}


class Login(BaseModel):
    password: SecretStr


@pytest.mark.parametrize(
    ("kind", "name"), [(SecretStr, "what"), (list[SecretBytes] | None, "what"), (Login, "what.password")]
)
def test_a_secret_makes_no_tool(kind, name):
    """It is written as stars, and the stars would run."""
    with pytest.raises(AgentDefinitionError, match=f"tool act: {name} is a secret"):
        assert taking(kind).tool_spec


class Masked(BaseModel):
    number: str

    @field_serializer("number")
    def mask(self, value: str) -> str:
        """Hide it."""
        return "*" * len(value)


@pytest.mark.parametrize(("kind", "given"), [(Secret[str], "x"), (Masked, {"number": "1234"})])
def test_what_is_not_written_as_it_is_does_not_run(kind, given):
    """A type or a serializer that hides the value: what runs would be what it shows."""
    with pytest.raises(ToolInputError, match="can't be signed"):
        taking(kind).canonical_input({"what": given})


def test_an_integer_that_no_json_code_reads_is_refused():
    """By its place: it could be written, and whoever reads it would fail."""
    check_json([10**4300 - 1, True], "it")
    with pytest.raises(TypeError, match=r"it\[1\] is an integer of more than 4,300 digits"):
        check_json([0, -(10**4300)], "it")
