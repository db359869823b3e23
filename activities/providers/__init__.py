"""Models of vendors. Vendor SDKs are imported here and nowhere else, and only when they are needed."""

from countersign.activities.providers.making import model_from

__all__ = ["model_from"]
