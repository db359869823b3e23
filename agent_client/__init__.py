"""Client code and the countersign command; the only door to Temporal from outside the worker."""
