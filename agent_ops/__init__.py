"""What operators run beside the workers: the codec endpoint of the Temporal UI.

Reaches Temporal through agent_client only. Nothing here runs in a workflow.
"""
