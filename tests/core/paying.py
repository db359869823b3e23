"""An agent that pays, in this process or in one that dies of it. Without heavy imports: each death begins a process."""

import importlib
import signal

from tests.core.driving import asking

from countersign import Agent, ScriptedModel, ToolContext, tool
from countersign.models import calls
from countersign.tools.executors import SequentialToolExecutor


def payer(folder, manager="countersign", deadly="", *, idempotent=False, hooks=(asking,)):
    """An agent that pays 1 and 2, one after the other; paying kills the process if the amount is in `deadly`."""

    @tool(context=True, idempotent=idempotent)
    def pay(amount: int, tool_context: ToolContext) -> str:
        """Pay."""
        with (folder / "paid").open("a") as paid:
            paid.write(f"{amount} {tool_context.idempotency_key}\n")
        if str(amount) in deadly:
            signal.raise_signal(signal.SIGKILL)
        return f"paid {amount}"

    files = importlib.import_module(f"{manager}.session").FileSessionManager
    both = calls(("pay", {"amount": 1}), ("pay", {"amount": 2}))
    return Agent(
        ScriptedModel([both, "done"]), tools=[pay], hooks=list(hooks), tool_executor=SequentialToolExecutor(),
        session_manager=files("s", str(folder / "kept")),
    )  # fmt: skip
