"""Ready-made intervention handlers."""
