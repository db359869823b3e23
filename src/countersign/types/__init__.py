"""Types of messages, tools, agents and errors, under Strands' module names."""
