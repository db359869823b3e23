"""Client code and the countersign command; the only door to Temporal from outside the worker.

Sessions are started by the name of their workflow. Of workflows and activities, nothing is needed but
the words that a session shows in the Temporal UI, and the list of its search attributes.

The names for client code stand in `countersign.client`.
"""
