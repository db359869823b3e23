"""The settings of payloads, from the environment or from a worker's flags; and where a store is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast
from urllib.parse import unquote, urlsplit

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from countersign.agent_client.payloads.errors import PayloadSettingsError

Scheme = Literal["file", "s3", "gs"]
FORMS = "file:///folder, s3://bucket/prefix or gs://bucket/prefix"


@dataclass(frozen=True)
class Location:
    """A place for blobs.

    Attributes:
        scheme: Which kind of store.
        root: A folder's absolute path, or a bucket's name.
        prefix: Of the keys in a bucket, with "/" at its end; "" for none.
    """

    scheme: Scheme
    root: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.root}" + (f"/{self.prefix}" if self.scheme != "file" else "")


def parsed(text: str) -> Location:
    """A location from its URL.

    Raises:
        ValueError: If it is none, saying what it should look like.
    """
    url = urlsplit(text)
    path = unquote(url.path)
    if url.query or url.fragment or url.scheme not in ("file", "s3", "gs"):
        raise ValueError(f"{text!r} is no store; give {FORMS}")
    if url.scheme == "file":
        if url.netloc or not path.strip("/"):
            raise ValueError(
                f"{text!r} names no folder; three slashes and an absolute path: file:///var/lib/countersign"
            )
        return Location("file", path)
    if not url.netloc:
        raise ValueError(f"{text!r} names no bucket; give {FORMS}")
    prefix = path.strip("/")
    return Location(cast(Scheme, url.scheme), url.netloc, f"{prefix}/" if prefix else "")


class PayloadSettings(BaseSettings):
    """How payloads are stored and encrypted; the same for workers, clients and the command."""

    model_config = SettingsConfigDict(env_prefix="COUNTERSIGN_")

    storage: str | None = Field(
        default=None,
        description=f"where large values go: {FORMS}; after commas, further ones that are only read",
    )
    storage_shared_from_kb: int = Field(
        default=256, ge=16, description="size from which values that clients read go there, in KB"
    )
    storage_cache_mb: int = Field(default=64, ge=0, description="memory for stored values read lately, in MB")
    encryption_keys: Path | None = Field(
        default=None, description="file with the keys of the encryption; the first one encrypts"
    )

    @field_validator("storage")
    @classmethod
    def _known(cls, given: str | None) -> str | None:
        for text in _split(given):
            parsed(text)
        return given

    @property
    def locations(self) -> list[Location]:
        """The stores; the first one is written to, all are read. Empty if there are none."""
        return [parsed(text) for text in _split(self.storage)]


def _split(given: str | None) -> list[str]:
    return [text.strip() for text in (given or "").split(",") if text.strip()]


def payload_settings() -> PayloadSettings:
    """The settings from the environment.

    Raises:
        PayloadSettingsError: If one can't be used, with its variable.
    """
    try:
        return PayloadSettings()
    except ValidationError as error:
        faults = [f"COUNTERSIGN_{str(e['loc'][0]).upper()}: {e['msg']}" for e in error.errors() if e["loc"]]
        raise PayloadSettingsError("; ".join(faults).replace("Value error, ", "") or str(error)) from error
