"""The effects: model calls, tools, durable steps, notifications; never imported by workflows."""
