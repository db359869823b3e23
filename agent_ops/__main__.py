"""python -m countersign.agent_ops: what operators run beside the workers."""

import errno
import socket
import sys
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from countersign.agent_core.errors import CountersignError
from countersign.agent_core.extras import how_to_install
from countersign.agent_ops.access import AccessSettingsError, Check, anybody, bearer_tokens, named_check

USAGE_ERROR = 2
LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]", "::1"]

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)


@app.callback()
def ops() -> None:
    """What operators run beside the workers."""


@app.command("codec-server")
def codec_server(
    ui_origin: Annotated[
        list[str],
        typer.Option(
            metavar="URL",
            envvar="COUNTERSIGN_CODEC_UI_ORIGIN",
            help="Where the Temporal UI is, like http://127.0.0.1:8233; repeat it for several.",
            show_default=False,
        ),
    ],
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port to listen on.")] = 8081,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="COUNTERSIGN_CODEC_TOKEN_FILE",
            help="Bearer tokens that may use it, one a line.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            envvar="COUNTERSIGN_CODEC_CHECK",
            help="A function of yours that gets the headers and says who may use it.",
            show_default=False,
        ),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="No check at all; on a loopback address only.", show_default=False)
    ] = False,
) -> None:
    """Make payloads readable in the Temporal UI: the codec endpoint.

    Keys and stores come from the same settings as the workers': COUNTERSIGN_ENCRYPTION_KEYS and
    COUNTERSIGN_STORAGE. In the UI: "Configure Codec Server" at the top right, endpoint http://127.0.0.1:8081.
    """
    try:
        allowed = _check(host, token_file, check, open_)
        _serve(allowed, [origin.strip() for text in ui_origin for origin in text.split(",")], host, port, open_)
    except CountersignError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(USAGE_ERROR) from None


def _check(host: str, token_file: Path | None, check: str | None, open_: bool) -> Check:
    """The one check that was asked for.

    Raises:
        AccessSettingsError: If it is none or several, or can't be used.
    """
    if sum((token_file is not None, check is not None, open_)) != 1:
        raise AccessSettingsError("say who may use it: one of --token-file, --check and --open")
    if token_file is not None:
        return bearer_tokens(token_file)
    if check is not None:
        sys.path.insert(0, "")
        return named_check(check)
    if host != "localhost" and not _is_loopback(host):
        raise AccessSettingsError(f"--open is for loopback addresses; on {host} use --token-file or --check")
    return anybody


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _serve(check: Check, origins: list[str], host: str, port: int, open_: bool) -> None:
    try:
        import uvicorn

        from countersign.agent_ops.codec_app import codec_app, origin_of
    except ImportError:
        raise AccessSettingsError(f"the codec endpoint needs a web server; {how_to_install('ops')}") from None
    from countersign.agent_client.payloads import data_converter

    known = []
    for text in origins:
        if (origin := origin_of(text)) is None:
            raise AccessSettingsError(f"--ui-origin {text!r} must be like http://127.0.0.1:8233, without a path")
        known.append(origin)
    serving = codec_app(data_converter(), check, known, LOOPBACK_NAMES if open_ else ["*"])
    sockets = _bound(host, port)
    print(f"countersign codec endpoint: http://{host}:{port}, for {', '.join(known)}", file=sys.stderr, flush=True)
    config = uvicorn.Config(serving, host=host, port=port, log_level="warning", server_header=False)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets)


def _listening(family: int, place: tuple[Any, ...]) -> socket.socket | None:
    """A socket there; None for an address that this machine has not, as ::1 of a localhost without IPv6."""
    try:
        return socket.create_server((place[0], place[1]), family=family)
    except OSError as error:
        if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            raise
    return None


def _bound(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen, for each address of the host.

    Raises:
        AccessSettingsError: If the port can't be had.
    """
    try:
        places = dict.fromkeys((row[0], row[4]) for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        found = [one for family, place in places if (one := _listening(family, place[:2])) is not None]
        if not found:
            raise OSError(f"no address of {host!r} is one of this machine")
        return found
    except OSError as error:
        raise AccessSettingsError(
            f"can't listen on {host}:{port} ({error.strerror or error}); set --port or --host"
        ) from None


if __name__ == "__main__":
    app()
