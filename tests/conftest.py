"""What every test relies on: fixed seeds, golden texts, a cache folder of its own, and no green run in which nothing ran."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.load_profile("repeatable")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden texts instead of comparing with them")


@pytest.fixture(autouse=True)
def _seeds() -> None:
    random.seed(0)
    np.random.seed(0)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: text equals tests/golden/<name>; ``--update-golden`` writes it."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no {path}; run pytest with --update-golden once"
        assert text == path.read_text(encoding="utf-8"), f"differs from {path}; see --update-golden"

    return check


class _Outcomes:
    """Counts tests that were skipped, and all others that had an outcome."""

    def __init__(self) -> None:
        self.skipped = self.decided = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped += 1
        elif report.when == "call" or report.failed:
            self.decided += 1


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Outcomes(), "stof-outcomes")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    outcomes = session.config.pluginmanager.get_plugin("stof-outcomes")
    worker = hasattr(session.config, "workerinput")
    if exitstatus == 0 and not worker and outcomes is not None and outcomes.skipped and not outcomes.decided:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
