"""Agents to run and to read."""
