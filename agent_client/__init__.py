"""Client code and the countersign command; the only door to Temporal from outside the worker.

Sessions are started by the name of their workflow. Of workflows and activities, nothing is needed for that but
the words that a session shows in the Temporal UI; `examining` needs the list of its search attributes, and what
replays histories (`replaying` and its neighbours) needs the workflows themselves.

The names for client code stand in `countersign.client`.
"""
