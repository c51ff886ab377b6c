"""``tvm-stof tune``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import problems, sweep
from .output import FORMAT, Named, decided, emit_json, emit_table, milliseconds, ratio

if TYPE_CHECKING:
    from ..problems import Problem


class Kinds(Named):
    """One subcommand for each kind of problem."""

    thing = "kind of problem"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return problems.kinds()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in problems.kinds():
            return None
        kind = problems.kind(cmd_name)

        def call(style: str, **values: Any) -> int:
            settings = {option.name: values.pop(option.name) for option in sweep.SETTINGS if option.name}
            return report([tune_one(kind.make(**values), settings)], style)

        style = click.Option(["--format", "style"], type=click.Choice(["table", "json"]), default="table", show_default=True,
                             help="Output format.")  # fmt: skip
        return click.Command(cmd_name, params=[*kind.OPTIONS, *sweep.SETTINGS, style], callback=call, help=kind.HELP)


@click.group("tune", cls=Kinds, invoke_without_command=True)
@click.option("--sweep", "path", type=click.Path(dir_okay=False, path_type=Path), help="TOML file of problems: see the README.")
@FORMAT
@click.pass_context
def command(ctx: click.Context, path: Path | None, style: str) -> int | None:
    """Search the best kernel for a problem on this machine.

    Every candidate is checked against a float64 oracle before it is timed; every trial is one line of the journal at once,
    so that Ctrl-C loses nothing and a second run goes on where the first stopped.
    """
    if ctx.invoked_subcommand is not None:
        if path is not None:
            raise click.UsageError("give either --sweep or a kind of problem")
        return None
    if path is None:
        raise click.UsageError(f"a kind of problem is missing: {', '.join(problems.kinds())}, or --sweep FILE.toml")
    settings, wanted = sweep.read(path)
    results = []
    for n, problem in enumerate(wanted, 1):
        from ..records import cli_text

        click.echo(f"[{n}/{len(wanted)}] {cli_text(problem)}", err=True)
        results.append(tune_one(problem, settings))
        if results[-1].stopped == "interrupted":
            break
    return report(results, style)


def tune_one(problem: Problem, settings: dict[str, Any]) -> Any:
    """Tune a problem with progress on stderr."""
    from .. import search

    families = settings["families"]
    chosen = None if families is None else [f.strip() for f in families.split(",") if f.strip()]
    return search.tune(problem, **{**settings, "families": chosen})


def report(results: list[Any], style: str) -> int:
    """Print what was found; 1 when a problem ended without any kernel."""
    if style == "json":
        emit_json([{
            "problem": r.problem.to_data(), "stopped": r.stopped, "journal": str(r.journal), "trials": len(r.trials),
            "best": r.best.to_data() if r.best is not None else None, "seconds": _time(r.best), "default_seconds": _time(r.default),
        } for r in results])  # fmt: skip
    else:
        rows = [[r.problem.kind, milliseconds(_time(r.best)), milliseconds(_time(r.default)), ratio(_time(r.default), _time(r.best)),
                 str(len(r.trials)), r.stopped, str(r.journal), decided(r.best.decisions) if r.best is not None else "no kernel"]
                for r in results]  # fmt: skip
        columns = ["kind", "best", "default", "gain", "trials", "stopped by", "journal", "decisions"]
        emit_table(columns, rows, left=(0, 5, 6, 7))
    return 0 if all(r.best is not None for r in results) else 1


def _time(trial: Any) -> float | None:
    return trial.seconds_median if trial is not None else None
