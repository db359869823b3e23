"""Loads agent modules: what a worker serves, with tools and steps ready to be called."""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from countersign.agent_core.agent import Agent
from countersign.agent_core.durable import durable_agents
from countersign.agent_core.effects import on_a_worker
from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.steps import STEP_MARK, StepInfo


@dataclass(frozen=True)
class AgentDeployment:
    """One agent that a worker serves.

    Attributes:
        name: The agent's name.
        module: The module that registers it.
        factory: Makes a fresh agent.
        template: An agent made once, outside of any workflow: its model and tools are what
            activities call, and its tools' schemas are built.
        steps: Durable steps of all loaded agent packages, by name.
    """

    name: str
    module: str
    factory: Callable[[], Agent]
    template: Agent
    steps: dict[str, StepInfo] = field(default_factory=dict)

    def fresh(self) -> Agent:
        """A fresh agent as a worker builds it: what waits elsewhere is neither read nor written."""
        token = on_a_worker.set(True)
        try:
            return self.factory()
        finally:
            on_a_worker.reset(token)

    def step(self, name: str) -> StepInfo | None:
        """A step of the loaded modules, or of the agent's handlers and its conversation manager."""
        agent = self.template
        found = [info for handler in agent.interventions for info in handler.steps(agent)]
        own = {info.name: info for info in [*found, *agent.conversation_manager.steps(agent)]}
        return self.steps.get(name) or own.get(name)


def load_agents(modules: Sequence[str]) -> dict[str, AgentDeployment]:
    """Import agent modules and build what they register.

    Args:
        modules: Dotted names, for instance ["my_package.my_agents"].

    Returns:
        Agents by name.

    Raises:
        AgentDefinitionError: Naming the module or agent that can't be served, and why.
    """
    if not modules:
        raise AgentDefinitionError("no agent module given; pass --agents my_package.my_agents")
    deployments: dict[str, AgentDeployment] = {}
    steps: dict[str, StepInfo] = {}
    for name in dict.fromkeys(modules):
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit) as error:  # a module that leaves would take its loader along, with its exit code
            raise AgentDefinitionError(
                f"agent module {name!r} can't be imported: {type(error).__name__}: {error}"
            ) from error
        for agent, factory in durable_agents(module).items():
            if agent in deployments and deployments[agent].factory is not factory:
                raise AgentDefinitionError(
                    f"two agents are named {agent!r}: in {deployments[agent].module} and in {name}; rename one"
                )
            deployments[agent] = AgentDeployment(agent, name, factory, _template(agent, factory), steps)
    steps.update(_steps({name.split(".")[0] for name in modules}))
    return deployments


def _template(name: str, factory: Callable[[], Agent]) -> Agent:
    token = on_a_worker.set(True)
    try:
        agent = factory()
    except (Exception, SystemExit) as error:
        raise AgentDefinitionError(f"the factory of agent {name!r} raised {type(error).__name__}: {error}") from error
    finally:
        on_a_worker.reset(token)
    if not isinstance(agent, Agent):
        raise AgentDefinitionError(f"the factory of agent {name!r} returned {agent!r} instead of an Agent")
    if agent.model is None:
        raise AgentDefinitionError(f"agent {name!r} has no model; pass Agent(model=...)")
    agent.tool_registry.specs()  # built here, once, and not in a workflow
    assert agent.output_tool is None or agent.output_tool.tool_spec  # likewise
    for handler in agent.interventions:
        try:
            handler.check_durable()
        except AgentDefinitionError as error:
            raise AgentDefinitionError(f"agent {name!r}: {error}") from error
    return agent


def _steps(roots: set[str]) -> dict[str, StepInfo]:
    """The steps of every loaded module under the packages of the agent modules."""
    found: dict[str, StepInfo] = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] not in roots:
            continue
        for value in list(vars(module).values()):
            info = getattr(value, STEP_MARK, None)
            if isinstance(info, StepInfo):
                found[info.name] = info
    return found
