"""Whether agent modules load, for a diagnosis: tried in a process of its own. Changes nothing."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence

from countersign.agent_client.diagnosis import Check

_IMPORT_S = 60.0


async def agents_check(modules: Sequence[str]) -> Check:
    """Whether agent modules load, in a process of their own and from the current folder, as in a worker."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "countersign.agent_client.trial_load",
        *modules,
        cwd=os.getcwd(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        said, complained = await asyncio.wait_for(process.communicate(), _IMPORT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        advice = "keep what takes long out of the module's top level"
        return Check("agents", "failure", f"importing took more than {_IMPORT_S:g} s", advice)
    if process.returncode != 0:
        last = (complained.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1]
        advice = f"correct the module, or stand in the folder that it can be imported from (this is {os.getcwd()})"
        return Check(
            "agents", "failure", last.removeprefix("countersign.agent_core.errors.AgentDefinitionError: "), advice
        )
    return Check("agents", "ok", ", ".join(json.loads(said.decode().splitlines()[-1])))
