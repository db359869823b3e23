"""What can go wrong with payloads, in one tree.

    PayloadError (a CountersignError)
    ├── PayloadSettingsError    a store, a key file or an extra that can't be used as given
    ├── StorageError            a blob that is ours can't be stored or read now
    │   └── NotHereError        the store has no such blob, or the settings no such store
    └── DecryptionError         a payload is encrypted with a key that this process does not have

A workflow task or an activity that meets one of the last ones fails and is tried again; nothing is lost. Only
where anybody may have sent the payload, an argument of a session, a worker decodes it to a marker instead.
"""

from countersign.agent_core.errors import CountersignError


class PayloadError(CountersignError):
    """Base of what goes wrong with payloads."""


class PayloadSettingsError(PayloadError):
    """A store, a key file or an extra that can't be used as given."""


class StorageError(PayloadError):
    """A blob that is ours can't be stored or read now."""


class NotHereError(StorageError):
    """The store has no such blob, or the settings no such store; whoever wrote the reference may have made it up."""


class DecryptionError(PayloadError):
    """A payload is encrypted with a key that this process does not have."""
