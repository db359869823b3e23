"""Where a name of Strands is taken over, it stands where it stands there: an import moves by its first word alone."""

import importlib

import pytest

MODULES = {
    "agent", "agent.agent", "agent.agent_result", "agent.conversation_manager", "agent.state",
    "hooks", "hooks.events", "hooks.registry",
    "interrupt",
    "interventions", "interventions.actions", "interventions.handler",
    "models",
    "session", "session.file_session_manager",
    "tools", "tools.decorator", "tools.executors",
    "types.agent", "types.content", "types.exceptions", "types.interrupt", "types.tools",
    "vended_interventions", "vended_interventions.cedar", "vended_interventions.hitl",
    "vended_interventions.hitl.classifier",
}  # fmt: skip
"""Modules that both sides have."""

OURS = {
    "hooks": {"ModelStopResponse"},  # a class inside of AfterModelCallEvent there
    "interventions": {"Edit", "Evaluate"},
    "models": {"Scene", "ScriptedModel", "StreamEvent", "Turn", "calls"},
    "tools.executors": {"ToolExecutor"},  # in a private module there
    "vended_interventions.cedar": {"load_text"},
    "vended_interventions.hitl": {"ClassifierResult"},  # in hitl.classifier there
}
"""What only our module of a name has."""


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_of_strands_name_has_strands_names(module: str):
    """All but those that are listed as ours."""
    ours, theirs = (importlib.import_module(f"{root}.{module}") for root in ("countersign", "strands"))
    names = getattr(ours, "__all__", None) or [name for name in vars(ours) if name[0].isupper()]
    assert {name for name in names if not hasattr(theirs, name)} == OURS.get(module, set())
