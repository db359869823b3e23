"""What a worker process is made of, besides agents: settings, queues, health, metrics, traces.

Only `worker.py` imports this room. It may use every room below; nothing that a workflow, an activity or a
client needs may live here.
"""
