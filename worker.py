"""The composition root: settings, registry, Temporal workers. Nobody imports it."""
