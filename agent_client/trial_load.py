"""Loads agent modules and prints their agents' names: `python -m countersign.agent_client.trial_load MODULE …`.

A process of its own, because nobody knows what a module does when it is imported; -m, so that the current folder
is searched first, as in a worker. The names are JSON in a line of their own, which is marked: modules print too.
"""

import json
import sys

from countersign.agent_core.deployment import load_agents

NAMES = "countersign agents: "
"""The mark: what the line of the names begins with."""

if __name__ == "__main__":
    print("\n" + NAMES + json.dumps(sorted(load_agents(sys.argv[1:]))))
