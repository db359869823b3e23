"""Completes session ids in a shell: from Temporal's list, in three seconds or not at all, and never with an error."""

import asyncio

import typer

_PATIENCE_S = 3.0
_MOST = 100


def session_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of sessions that begin with what was typed: those that go on first.

    Args:
        context: Of the half-typed command; its connection is used.
        incomplete: What was typed.
    """
    given = context.params
    try:
        return asyncio.run(_listed(incomplete, given.get("address"), given.get("namespace"), given.get("profile")))
    except (Exception, KeyboardInterrupt):  # a completion that fails completes nothing
        return []


async def _listed(incomplete: str, address: str | None, namespace: str | None, profile: str | None) -> list[str]:
    from countersign.agent_client.cli.running import silence_engine
    from countersign.agent_client.client import AgentClient

    silence_engine()
    async with asyncio.timeout(_PATIENCE_S):
        client = await AgentClient.connect(address, namespace, profile)
        ids = [session.session_id async for session in client.sessions(limit=_MOST)]
    return [name for name in ids if name.startswith(incomplete) and _is_plain(name)]


def _is_plain(name: str) -> bool:
    """True for an id that a shell takes as one word; anybody may have chosen it."""
    return name.isascii() and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
