"""`CedarAuthorization`: what policies permit, forbid or leave to a person, and that all else is denied."""

import json
import sys

import pytest
from tests.core.driving import START, acts, make, reply, results

from countersign import Agent, ScriptedModel, tool
from countersign.agent_core.cedar_policies import as_cedar
from countersign.agent_core.inprocess_effects import InProcessEffects
from countersign.errors import AgentDefinitionError
from countersign.interventions import InterventionHandler, Proceed, Transform
from countersign.models import calls
from countersign.vended_interventions.cedar import CedarAuthorization, load_text
from countersign.vended_interventions.hitl import HumanInTheLoop
from countersign.workflows.library_watch import watch

ALICE = {"type": "User", "id": "alice"}
PERMIT = "permit(principal, action, resource);"


def gated(log, policies, *inputs, principal=ALICE, tools=None, script=None, **options):
    """An agent that calls `act` with each input, behind policies."""
    handler = CedarAuthorization(policies=policies, principal=principal, **options)
    return make(log, script or acts(*(inputs or (1,))), hooks=[], interventions=[handler], tools=tools)


def denied(agent, **state):
    """Why the only call was denied."""
    agent("go", **state)
    [(status, text)] = results(agent)
    assert status == "error"
    return text


@pytest.mark.parametrize(
    ("policies", "ran"),
    [
        (PERMIT, [1, 200]),
        ('permit(principal, action == Action::"act", resource);', [1, 200]),
        ('permit(principal == User::"alice", action, resource);', [1, 200]),
        ('permit(principal == User::"bob", action, resource);', []),
        ("permit(principal, action, resource) when { context.input.x < 100 };", [1]),
        (PERMIT + "forbid(principal, action, resource) when { context.input.x < 100 };", [200]),
        ('permit(principal, action == Action::"other", resource);', []),
    ],
)
def test_policies_decide_by_principal_tool_and_input(policies, ran):
    """A permit is needed, and a forbid wins."""
    log = []
    gated(log, policies, 1, 200)("go")
    assert sorted(log) == sorted(ran)


def test_a_denial_names_the_policies_that_decided():
    """By their @id, or by number and line."""
    policies = f"""{PERMIT}
        @id("frozen") forbid(principal, action, resource);
        // ; a comment
        forbid(principal, action, resource) unless {{ context.input.x > 100 }};"""
    assert denied(gated([], policies)) == "DENIED: Access denied by Cedar policy: frozen, policy2 (line 4)"


def test_without_a_permit_the_denial_says_so():
    """There is no policy to name."""
    policies = 'permit(principal == User::"bob", action, resource);'
    assert denied(gated([], policies)) == "DENIED: Access denied: no Cedar policy permits it"


def test_the_principal_comes_with_the_invocation():
    """Different callers, different rights."""
    policies = 'permit(principal == User::"alice", action, resource);'
    log = []
    gated(log, policies, principal=None)("go", principal=ALICE)
    assert "no Cedar policy permits" in denied(
        gated(log, policies, principal=None), principal={"type": "User", "id": "b"}
    )
    assert log == [1]


@pytest.mark.parametrize("state", [{}, {"principal": None}, {"principal": "alice"}, {"principal": {"id": "alice"}}])
def test_nobody_is_no_principal(state):
    """Fail closed, even if the policies permit everybody."""
    assert "nobody said who acts" in denied(gated([], PERMIT, principal=None), **state)


def test_a_resolver_finds_the_principal():
    """Sync or async; what it can't find is denied."""

    async def resolve(state):
        return {"type": "User", "id": state["user"]} if "user" in state else None

    policies = 'permit(principal == User::"alice", action, resource);'
    log = []
    gated(log, policies, principal=None, principal_resolver=resolve)("go", user="alice")
    assert "nobody said" in denied(gated(log, policies, principal=None, principal_resolver=resolve))
    assert log == [1]


def test_an_id_is_data_and_not_policy_text():
    """Quotes and newlines in a name reach no parser."""
    name = 'x" || true || "\n'
    policies = f"permit(principal == User::{json.dumps(name)}, action, resource);"
    log = []
    gated(log, policies, principal={"type": "User", "id": name})("go")
    assert log == [1]


def test_entities_give_groups_and_a_resolver_the_resource():
    """Whatever Cedar can say of them."""
    entities = [
        {"uid": ALICE, "attrs": {}, "parents": [{"type": "Group", "id": "ops"}]},
        {"uid": {"type": "Record", "id": "1"}, "attrs": {"owner": {"__entity": ALICE}}, "parents": []},
        {"uid": {"type": "Record", "id": "2"}, "attrs": {"owner": {"__entity": {**ALICE, "id": "b"}}}, "parents": []},
    ]
    policies = 'permit(principal in Group::"ops", action, resource is Record) when { resource.owner == principal };'
    log = []
    gated(
        log,
        policies,
        1,
        2,
        entities=entities,
        resource_resolver=lambda call: {"type": "Record", "id": str(call["tool_input"]["x"])},
    )("go")
    assert log == [1]


def test_the_session_counts_permitted_calls_and_takes_more_fields():
    """A rate limit, and a role that the caller brings; a denied call is not counted, nor can the role set the count."""
    policies = """permit(principal, action, resource)
        when { context.session.call_count <= 2 && context.session.role == "ops" && context.input.x > 0 };"""
    log = []

    def enrich(call):
        return {"role": call["invocation_state"]["role"], "call_count": 0}

    gated(log, policies, 1, -1, 2, 3, context_enricher=enrich)("go", role="ops")
    assert log == [1, 2]


def test_a_call_that_waits_is_counted_once():
    """Its second pass starts from the count before the first."""
    log = []
    policies = "@confirm permit(principal, action, resource) when { context.session.call_count == 1 };"
    agent = gated(log, policies)
    agent(reply(agent("go"), "y"))
    assert log == [1]


def test_the_hour_is_that_of_the_cycle(monkeypatch):
    """And not of a clock that the handler reads."""
    policies = "permit(principal, action, resource) when { context.session.hour_utc == 7 };"
    log = []
    monkeypatch.setattr(InProcessEffects, "now", lambda self: START.replace(hour=7))
    gated(log, policies)("go")
    assert log == [1]


def test_a_policy_that_fails_denies_even_if_another_permits():
    """Cedar alone would skip the broken forbid and permit."""
    policies = PERMIT + '@id("cap") forbid(principal, action, resource) when { context.input.amount > 100 };'
    assert "could not evaluate the call: error while evaluating policy `cap`" in denied(gated([], policies))


@pytest.mark.parametrize("smuggled", [{"__entity": ALICE}, {"__extn": {"fn": "ip", "arg": "10.0.0.1"}}])
def test_a_model_can_not_pass_an_entity_off_as_its_input(smuggled):
    """Cedar's JSON escapes in an input are refused, wherever they stand."""

    @tool
    def put(data: dict) -> str:
        """Put."""
        raise AssertionError("must not run")

    script = [calls(("put", {"data": {"rows": [{"owner": smuggled}]}})), "done"]
    agent = gated([], PERMIT, tools=[put], script=script)
    assert "which Cedar would not read as data" in denied(agent)


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ({"a": None, "b": [True, 1, "x"]}, {"b": [True, 1, "x"]}),
        (1.5, {"__extn": {"fn": "decimal", "arg": "1.5"}}),
        (2.0, {"__extn": {"fn": "decimal", "arg": "2.0"}}),
        (52.520008, "52.520008"),
        (1e20, "1e+20"),
        (2**63, str(2**63)),
        (-(2**63), -(2**63)),
    ],
)
def test_values_that_cedar_has_not_are_told_apart(value, known):
    """A null field is absent; a number is a long, a decimal, or a text that no comparison takes."""
    assert as_cedar(value) == known


def test_decimals_compare():
    """A float from a model is a decimal for a policy."""

    @tool
    def pay(amount: float) -> str:
        """Pay."""
        return "paid"

    script = [calls(("pay", {"amount": 99.95}), ("pay", {"amount": 100.01}), ("pay", {"amount": 0.12345})), "done"]
    policies = 'permit(principal, action, resource) when { context.input.amount.lessThan(decimal("100.0")) };'
    agent = gated([], policies, tools=[pay], script=script)
    agent("go")
    assert [status for status, _ in results(agent)] == ["success", "error", "error"]


def test_an_approvers_edit_is_held_against_the_policies():
    """A person may approve what policies permit, and nothing else."""
    cedar = CedarAuthorization(
        policies="permit(principal, action, resource) when { context.input.x < 100 };", principal=ALICE
    )
    log = []
    agent = make(log, acts(1), hooks=[], interventions=[cedar, HumanInTheLoop()])
    agent(reply(agent("go"), {"decision": "edit", "input": {"x": 200}}))
    assert (log, results(agent)[0][0]) == ([], "error")


CONFIRMED = f"""{PERMIT}
@id("large") @confirm("over 100") forbid(principal, action, resource) when {{ context.input.x > 100 }};
@id("never") forbid(principal, action, resource) when {{ context.input.x > 1000 }};"""


def test_a_forbid_with_confirm_asks_a_person():
    """With the policy's id and words; the call runs once it is approved."""
    log = []
    agent = gated(log, CONFIRMED, 1, 200, 2000)
    result = agent("go")
    [question] = result.interrupts
    assert question.reason == 'Tool "act" requires human approval (large: over 100). Input: {"x": 200}'
    assert log == [1]
    agent(reply(result, "y"))
    assert log == [1, 200]
    assert [status for status, _ in results(agent)] == ["success", "success", "error"]


def test_a_person_can_not_lift_what_nothing_permits():
    """A forbid with @confirm grants nothing."""
    policies = '@confirm forbid(principal, action, resource); permit(principal == User::"bob", action, resource);'
    assert "no Cedar policy permits it" in denied(gated([], policies))


def test_a_permit_with_confirm_asks_even_beside_another_permit():
    """The stricter of two counts, and a bare annotation asks too."""
    result = gated([], f'{PERMIT} @id("careful") @confirm permit(principal, action, resource);')("go")
    assert "requires human approval (careful)" in result.interrupts[0].reason


def test_a_refusal_wins_over_a_permit():
    """The person's words reach the model."""
    log = []
    agent = gated(log, CONFIRMED, 200)
    agent(reply(agent("go"), "no: too much"))
    assert log == []
    assert "too much" in results(agent)[0][1]


def test_a_changed_input_is_judged_as_it_would_run():
    """A handler before it transforms the input."""

    class Double(InterventionHandler):
        name = "double"

        def before_tool_call(self, event, **kwargs):
            return Transform(apply=lambda e: e.tool_use["input"].update(x=e.tool_use["input"]["x"] * 2))

    log = []
    policies = "permit(principal, action, resource) when { context.input.x < 100 };"
    cedar = CedarAuthorization(policies=policies, principal=ALICE)
    make(log, acts(30, 60), hooks=[], interventions=[Double(), cedar])("go")
    assert log == [60]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policies": f"{PERMIT}\n// x;\npermit(principal, action, resource) when {{ ; }};"}, "begins in line 3"),
        ({"policies": "permit(principal, action, resource)"}, "begins in line 1"),
        ({"policies": ""}, "no policy in it"),
        ({"policies": 7}, "must be Cedar text"),
        ({"policies": "rules/agent.cedar"}, r"load_text\('rules/agent.cedar'\)"),
        ({"policies": "permit(principal == ?principal, action, resource);"}, "template"),
        ({"policies": f'@id("a"){PERMIT}@id("a"){PERMIT}'}, r'two have the @id\("a"\)'),
        ({"policies": PERMIT, "entities": [{"uid": "x"}]}, "entities: "),
        ({"policies": PERMIT, "schema": "entity ;"}, "schema: "),
        ({"policies": PERMIT, "principal": {"id": "alice"}}, "principal must be"),
        ({"policies": PERMIT, "principal": ALICE, "principal_resolver": lambda state: ALICE}, "not both"),
        ({"policies": PERMIT, "on_error": "panic"}, "on_error must be"),
    ],
)
def test_what_can_not_be_used_is_refused_when_the_handler_is_made(options, said):
    """With the place, or the way out."""
    with pytest.raises(AgentDefinitionError, match=said):
        CedarAuthorization(**options)


SCHEMA = """entity User; entity Resource;
action act appliesTo { principal: User, resource: Resource,
  context: { input: { x: Long }, session: { hour_utc: Long, call_count: Long } } };"""


@pytest.mark.parametrize(
    "head",
    [
        'action == Action::"atc"',
        'action in [Action::"act", Action::"atc"]',
        'action in Action::"atc"',
        'action == X::Action::"act"',
    ],
)
def test_a_policy_about_a_tool_that_does_not_exist_is_refused(head):
    """Told the tools, a misspelt forbid is found at once."""
    with pytest.raises(AgentDefinitionError, match=r"oops is about .*, which is none of the tools"):
        CedarAuthorization(policies=f'{PERMIT} @id("oops") forbid(principal, {head}, resource);', tools=["act"])


def test_tools_are_taken_as_such_by_definition_or_by_name_and_groups_are_actions_too():
    """As an agent has them."""

    @tool
    def act() -> str:
        """Act."""
        return ""

    entities = [{"uid": {"type": "Action", "id": "writes"}, "attrs": {}, "parents": []}]
    heads = ['action == Action::"act"', 'action in Action::"writes"', 'action in [Action::"b", Action::"c"]', "action"]
    policies = "".join(f"permit(principal, {head}, resource);" for head in heads)
    CedarAuthorization(policies=policies, tools=[act, {"name": "b"}, "c"], entities=entities)
    with pytest.raises(AgentDefinitionError, match="tools or their names, not 7"):
        CedarAuthorization(policies=policies, tools=[7])


def test_policies_are_held_against_a_schema():
    """A tool or a field that does not exist is found at once, with its line."""
    policies = f'{PERMIT}\nforbid(principal, action == Action::"atc", resource);'
    with pytest.raises(AgentDefinitionError, match=r"line 2: .*unrecognized action"):
        CedarAuthorization(policies=policies, schema=SCHEMA)


def test_requests_are_held_against_a_schema():
    """What fits is decided; a tool that the schema does not have is denied."""
    log = []
    gated(log, PERMIT, schema=SCHEMA)("go")

    @tool
    def other() -> str:
        """Other."""
        raise AssertionError("must not run")

    agent = gated(log, PERMIT, schema=SCHEMA, tools=[other], script=[calls(("other", {})), "done"])
    assert "could not evaluate" in denied(agent)
    assert log == [1]


def test_a_resolver_that_fails_denies_unless_told_otherwise():
    """`on_error` is the handler's own."""

    def fail(state):
        raise RuntimeError("directory is down")

    assert "directory is down" in denied(gated([], PERMIT, principal=None, principal_resolver=fail))
    log = []
    gated(log, PERMIT, principal=None, principal_resolver=fail, on_error="proceed")("go")
    assert log == [1]


def test_new_policies_judge_an_old_session():
    """Policies are not among what a handler remembers; the count is."""
    old = CedarAuthorization(policies=PERMIT, principal=ALICE)
    agent = Agent(ScriptedModel(["hi"]), interventions=[old])
    old.permitted["act"] = 4
    taken = agent.memory.take()
    assert json.loads(json.dumps(taken)) == {"CedarAuthorization:cedar-authorization": {"permitted": {"act": 4}}}


async def test_a_decision_touches_nothing():
    """No file, socket or process while policies are made and asked, as the worker's watch sees it."""
    log = []
    agent = gated(log, CONFIRMED)
    with watch():
        CedarAuthorization(policies=f"{CONFIRMED} // parsed in here", schema=SCHEMA)
        await agent.invoke_async("go")
    assert log == [1]


def test_without_cedarpy_the_error_names_the_extra(monkeypatch):
    """The package is optional."""
    monkeypatch.setitem(sys.modules, "cedarpy", None)
    with pytest.raises(AgentDefinitionError, match=r"clone\[cedar\]"):
        CedarAuthorization(policies=f"{PERMIT} // not parsed before")


def test_a_file_is_read_once(tmp_path):
    """A change counts from the next start on, like changed code."""
    file = tmp_path / "agent.cedar"
    file.write_text(PERMIT)
    assert load_text(file) == PERMIT
    file.write_text("")
    assert load_text(str(file)) == PERMIT


def test_a_later_handler_is_not_heard_about_a_denied_call():
    """Cheap authorization first, expensive judges after it."""
    heard = []

    class Judge(InterventionHandler):
        name = "judge"

        def before_tool_call(self, event, **kwargs):
            heard.append(event.tool_use["input"]["x"])
            return Proceed()

    cedar = CedarAuthorization(policies=CONFIRMED, principal=ALICE)
    make([], acts(1, 2000), hooks=[], interventions=[cedar, Judge()])("go")
    assert heard == [1]
