"""Temporal workflows: drive agent_core and turn its effects into activities; no I/O of their own."""
