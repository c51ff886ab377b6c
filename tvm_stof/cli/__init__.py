"""The command ``tvm-stof``. One file a command, imported when it is called, so that ``--help`` is quick.

Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 a difference or failure was found, 2 usage or input
error, 130 interrupted.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import Any

import click

from .. import __version__
from ..errors import ReplayMismatch, StofError
from .output import Named

#: command -> one line of help; the module of the same name holds ``command``
COMMANDS = {
    "tune": "Search the best kernel for a problem on this machine.",
    "show": "The best records of journals and schedules.",
    "mask": "What a mask leaves: density, blocks, balance, floor, a drawing.",
    "publish": "Write the best record of every problem to schedules.",
    "replay": "Check records: schema, decisions, source, numerics.",
    "env": "This machine as records describe it.",
}


class Lazy(Named):
    """A group whose commands are imported at first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f".{cmd_name}", __name__).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tvm-stof")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def group(ctx: click.Context, debug: bool) -> None:
    """Fuse, tune, store and replay sparse attention and cascaded reductions."""
    ctx.obj = {"debug": debug}


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run a command line and answer its exit code."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    try:
        result: Any = group.main(args=arguments, prog_name="tvm-stof", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except (BrokenPipeError, SystemExit):  # click exits by itself only for a broken pipe: whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except StofError as error:
        if "--debug" in arguments:
            raise
        click.echo(f"tvm-stof: {error}", err=True)
        return 1 if isinstance(error, ReplayMismatch) else 2
