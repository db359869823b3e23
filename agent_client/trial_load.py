"""Loads agent modules and prints their agents' names: `python -m countersign.agent_client.trial_load MODULE …`.

A process of its own, because nobody knows what a module does when it is imported; -m, so that the current folder
is searched first, as in a worker. The names are JSON in the last line, whatever the modules have printed before.
"""

import json
import sys

from countersign.agent_core.deployment import load_agents

if __name__ == "__main__":
    print("\n" + json.dumps(sorted(load_agents(sys.argv[1:]))))
