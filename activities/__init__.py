"""The effects: calling a model, running a tool or a step, reading a cycle's history.

Activities know agents only as they were loaded at the worker's start; they never meet workflows.
"""
