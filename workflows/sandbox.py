"""The policed sandbox: user policy code runs with the clock, chance, files and the network locked away.

Modules under the root package of an agent module are loaded anew for each cycle workflow, under
Temporal's restrictions; everything else passes through and is loaded once. Helper modules beside
an agent module count as policy: they stand under the same root.
"""

import importlib.util
import logging
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.worker.workflow_sandbox._importer import Importer
from temporalio.worker.workflow_sandbox._restrictions import RestrictedWorkflowAccessError, RestrictionContext
from temporalio.workflow import SandboxImportNotificationPolicy

from countersign.agent_core.durable import marked_factories
from countersign.agent_core.effects import on_a_worker
from countersign.agent_core.errors import AgentDefinitionError, CountersignError
from countersign.workflows.frozen_modules import PROBE, FrozenModules
from countersign.workflows.library_watch import watch
from countersign.workflows.light_sandbox import LightSandboxRunner
from countersign.workflows.restrictions import FORBIDDEN_MEMBERS, LOADED_FIRST

_NEVER_POLICED = frozenset({"countersign", "temporalio", "pydantic", "pydantic_core", "anyio", "google"}) | frozenset(
    sys.stdlib_module_names
)


STEP_AWAITED = (
    "which hooks and handlers must not do: they run again when a cycle is resumed or replayed, and must decide the "
    "same. Move the call into a durable step, an async function at the top of the module decorated with @step, and "
    "await it; its result is recorded once."
)
"""The way out for a hook or a handler."""

BUILT_OUTSIDE = (
    "which it must not do: it runs again for every cycle and replay, and must build the same agent. If a model is what "
    'does that, give Agent(model=...) a function that returns it, or a name like "bedrock:<id>": then it is made once, '
    "outside. What a hook needs to know it gets by awaiting a durable step, an async function decorated with @step."
)
"""The way out for a module or a factory, which can't await."""

_restrictions_log = logging.getLogger("temporalio.worker.workflow_sandbox._restrictions")


class PoliceAsleepError(CountersignError):
    """The self-test found that policy code could reach the clock; the worker must not serve."""


class _AllBut(frozenset[str]):
    """The passthrough set: everything that does not stand under a policed root.

    Temporal asks for a module's name and for each of its ancestors, so a list of names can't say
    "all but these".
    """

    def __contains__(self, name: object) -> bool:
        return not super().__contains__(str(name).partition(".")[0])

    def __or__(self, other: Any) -> "_AllBut":
        return self


def roots_of(agent_modules: Sequence[str]) -> list[str]:
    """The policed root packages of agent modules.

    Raises:
        AgentDefinitionError: If one would police Python, Temporal or Countersign itself.
    """
    roots = list(dict.fromkeys(name.split(".")[0] for name in agent_modules))
    for root in roots:
        if root in _NEVER_POLICED:
            raise AgentDefinitionError(
                f"agents can't be defined under {root!r}, which every module may use; "
                "put them into a package of your own"
            )
    return roots


def policed_runner(agent_modules: Sequence[str]) -> SandboxedWorkflowRunner:
    """The workflow runner of a worker that serves these agent modules.

    Their packages are compiled here and now: what is edited later counts from the next start on.
    Each agent module is loaded and each factory called once in the sandbox, so that one that can't be is found now,
    and not by the first session. Call `load_agents` before: what a library reads once, it has read then.

    Raises:
        AgentDefinitionError: If a root package can't be policed or found, or an agent module can't be
            loaded or an agent not be built in the sandbox.
        PoliceAsleepError: If the self-test gets through to the clock.
    """
    roots = roots_of(agent_modules)
    FrozenModules.install(roots)
    restrictions = SandboxRestrictions(
        passthrough_modules=_AllBut(roots),  # type: ignore[arg-type]  # only asked for membership
        invalid_modules=SandboxRestrictions.default.invalid_modules,
        invalid_module_members=FORBIDDEN_MEMBERS,
        import_notification_policy=SandboxImportNotificationPolicy.SILENT,
    )
    for root in roots:
        self_test(root, restrictions)
    for name in agent_modules:
        copy_context().run(_rehearse, name, restrictions)
    return LightSandboxRunner(restrictions=restrictions)


def _rehearse(name: str, restrictions: SandboxRestrictions) -> None:
    on_a_worker.set(True)
    context = RestrictionContext()
    running = f"the top of agent module {name!r}, or of a module it imports,"
    try:
        with Importer(restrictions, context).applied(), watch():
            with import_time():
                module = __import__(name, fromlist=["*"])
            context.is_runtime = True
            for agent, factory in marked_factories(module):
                running = f"the factory of agent {agent!r}"
                factory()
    except Exception as error:
        text = explain(error, running, BUILT_OUTSIDE)
        raise AgentDefinitionError(
            text or f"{running.rstrip(',')} can't be run in the sandbox: {type(error).__name__}: {error}"
        ) from error


def self_test(root: str, restrictions: SandboxRestrictions) -> None:
    """Prove that code under a root package can't read the clock.

    Raises:
        PoliceAsleepError: If it can.
    """
    context = RestrictionContext()
    importer = Importer(restrictions, context)
    policed = not importer.module_configured_passthrough(root)
    with importer.applied():
        probe: types.ModuleType = __import__(f"{root}.{PROBE}" if _is_package(root) else root, fromlist=["*"])
        context.is_runtime = True
        # Temporal warns of each forbidden call; this one is meant, and would look like a fault.
        _restrictions_log.disabled = True
        try:
            clock = getattr(probe, "probe", None) or __import__("time").time
            clock()
        except RestrictedWorkflowAccessError:
            if policed:
                return
        finally:
            _restrictions_log.disabled = False
    raise PoliceAsleepError(
        f"code under {root!r} can read the clock inside a workflow; the sandbox does not police it. "
        "Is the package imported under another name too?"
    )


def _is_package(root: str) -> bool:
    spec = importlib.util.find_spec(root)
    return spec is not None and spec.submodule_search_locations is not None


@contextmanager
def import_time() -> Iterator[None]:
    """While an agent module is loaded inside a workflow, it may do what modules do when they are imported.

    Reading a setting from the environment at the top of a module is common and harmless; in a hook
    it is not.
    """
    importer = Importer.current_importer()
    if importer is None:
        yield
        return
    if "time" not in importer.modules_checked_for_restrictions:
        # Whoever takes one of these from sys.modules, or by importlib.import_module, must find it restricted;
        # Temporal hands out the real one until somebody has used an import statement.
        for name in LOADED_FIRST:
            loaded = __import__(name, fromlist=["__name__"])
            sys.modules[name] = loaded  # os.path is posixpath, and restricted by that name alone
    context = importer.restriction_context
    before, context.is_runtime = context.is_runtime, False
    try:
        yield
    finally:
        context.is_runtime = before


def explain(error: BaseException, callback: str, way_out: str = STEP_AWAITED) -> str | None:
    """What a forbidden call means for the person who wrote it.

    Args:
        error: What user code raised.
        callback: The hook, handler, module or factory that ran.
        way_out: Why it must not, and what to do instead.

    Returns:
        A message with the callback, the call and the way out; None if it is another error.
    """
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if isinstance(found, RestrictedWorkflowAccessError):
            name = found.qualified_name.removeprefix("__builtins__.").removesuffix(".__call__")
            return f"{callback} called {name}, {way_out}"
        found = found.__cause__ or found.__context__
    return None
