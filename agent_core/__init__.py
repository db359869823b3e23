"""The agent: messages, hooks, interrupts, interventions, tools, the cycle and the session.

Pure and deterministic. Nothing here may reach Temporal, a socket, a file, the clock, random
numbers or the environment: time, ids and effects come in through `agent_core.effects.Effects`.

What does: `inprocess` and `inprocess_effects`, which run an agent without Temporal, read the clock; `hitl`'s
`ask="stdio"`, which no worker takes, reads standard input; `deployment` imports the modules of agents.
"""
