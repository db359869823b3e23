"""The agent: messages, hooks, interrupts, interventions, tools, the cycle and the session.

Pure and deterministic. Nothing here may reach Temporal, a socket, a file, the clock, random
numbers or the environment: time, ids and effects come in through `agent_core.effects.Effects`.
"""
