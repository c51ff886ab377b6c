"""``tvm-stof tune``"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import click

from ..errors import UsageError, explain
from ..problems import Problem
from . import problems
from .output import FORMAT, emit_json, emit_table, milliseconds

BUDGET = [
    click.Option(["--trials"], type=click.IntRange(1), default=64, show_default=True, help="Candidates to measure at most."),
    click.Option(["--seconds"], type=click.FloatRange(0, min_open=True), help="Time budget."),
    click.Option(["--seed"], type=int, default=0, show_default=True),
    click.Option(["--device"], help="Device slug; this machine by default."),
    click.Option(["--logs"], type=click.Path(path_type=Path), default=Path("tuning_logs"), show_default=True, help="Folder of journals."),
    click.Option(["--families"], help="Only these families, comma-separated."),
    click.Option(["--format", "style"], type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output format."),
]


def tune_one(problem: Problem, trials: int, seconds: float | None, seed: int, device: str | None, logs: Path, families: str | None) -> Any:
    """Tune a problem with progress on stderr."""
    from .. import search

    chosen = None if families is None else [f.strip() for f in families.split(",") if f.strip()]
    return search.tune(problem, device=device, trials=trials, seconds=seconds, seed=seed, logs=logs, families=chosen)


def report(results: list[Any], style: str) -> int:
    """Print what was found; 1 when a problem ended without any kernel."""
    if style == "json":
        emit_json([{
            "problem": r.problem.to_data(), "stopped": r.stopped, "journal": str(r.journal), "trials": len(r.trials),
            "best": r.best.to_data() if r.best is not None else None,
            "default_seconds": r.default.seconds_median if r.default is not None else None,
        } for r in results])  # fmt: skip
    else:
        rows = []
        for r in results:
            default = r.default.seconds_median if r.default is not None else None
            best = r.best.seconds_median if r.best is not None else None
            gain = f"{default / best:.2f} x" if default and best else "-"
            family = str(r.best.decisions["family"]) if r.best is not None else "-"
            rows.append(
                [r.problem.kind, family, milliseconds(best), milliseconds(default), gain, str(len(r.trials)), r.stopped, str(r.journal)]
            )
        emit_table(["kind", "family", "best", "default", "gain", "trials", "stopped by", "journal"], rows)
    return 0 if all(r.best is not None for r in results) else 1


class Kinds(click.Group):
    """One subcommand for each kind of problem."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(problems.KINDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in problems.KINDS:
            return None

        def call(
            trials: int, seconds: float | None, seed: int, device: str | None, logs: Path, families: str | None, style: str, **values: Any
        ) -> int:
            problem = problems.maker(cmd_name)(**values)
            return report([tune_one(problem, trials, seconds, seed, device, logs, families)], style)

        return click.Command(cmd_name, params=[*problems.options(cmd_name), *BUDGET], callback=call, help=problems.KINDS[cmd_name])


@click.group("tune", cls=Kinds, invoke_without_command=True)
@click.option("--sweep", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="TOML file of problems: see the README.")
@FORMAT
@click.pass_context
def command(ctx: click.Context, sweep: Path | None, style: str) -> int | None:
    """Search the best kernel for a problem on this machine.

    Every candidate is checked against a float64 oracle before it is timed; every trial is one line of the journal at once, so that Ctrl-C
    loses
    nothing and a second run goes on where the first stopped.
    """
    if ctx.invoked_subcommand is not None:
        if sweep is not None:
            raise click.UsageError("give either --sweep or a kind of problem")
        return None
    if sweep is None:
        raise click.UsageError(f"a kind of problem is missing: {', '.join(problems.KINDS)}, or --sweep FILE.toml")
    settings, wanted = read_sweep(sweep)
    results = []
    for n, problem in enumerate(wanted, 1):
        click.echo(f"[{n}/{len(wanted)}] {problem}", err=True)
        results.append(tune_one(problem, **settings))
        if results[-1].stopped == "interrupted":
            break
    return report(results, style)


def read_sweep(path: Path) -> tuple[dict[str, Any], list[Problem]]:
    """Settings and problems of a sweep file; a list as a value stands for one problem with each of its members."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(explain(f"{path} is not TOML", got=error)) from error
    known = {"trials": 64, "seconds": None, "seed": 0, "device": None, "logs": Path("tuning_logs"), "families": None}
    tune = data.pop("tune", {})
    tables = data.pop("problem", [])
    unknown = sorted({*data, *(set(tune) - set(known))})
    if unknown or not isinstance(tables, list) or not tables:
        got = f"unknown {unknown}" if unknown else "no [[problem]]"
        raise UsageError(
            explain(f"{path} is not a sweep", got=got, accepted=f"[tune] with {', '.join(known)}; [[problem]] with kind and its options")
        )
    wanted = []
    for table in tables:
        kind = table.pop("kind", None)
        if kind not in problems.KINDS:
            raise UsageError(explain(f"{path}: unknown kind of problem", got=repr(kind), accepted=problems.KINDS))
        names = list(table)
        for values in itertools.product(*(v if isinstance(v, list) else [v] for v in table.values())):
            wanted.append(problems.from_table(kind, dict(zip(names, values))))
    return {**known, **tune, "logs": Path(tune.get("logs", "tuning_logs"))}, wanted
