"""Settings that all tests share: hypothesis profiles, and the account of conformance cases at the end of a run.

Flows in: the reports of tests that ran a case of the corpus, from however many processes. Flows out: per suite and
family how many cases passed of how many there are, so that a suite which silently ran less would show.
"""

from __future__ import annotations

import os
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, settings

# No deadline: on a shared machine a slow example says nothing. The same examples each time, so that a failure repeats.
settings.register_profile(
    "default", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("default"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def _accounts(terminalreporter: pytest.TerminalReporter, outcome: str) -> set[str]:
    reports = [report for report in terminalreporter.stats.get(outcome, []) if getattr(report, "when", "") == "call"]
    return {str(value) for report in reports for key, value in report.user_properties if key == "conformance"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints per suite and family how many cases passed of how many the corpus has."""
    failed = _accounts(terminalreporter, "failed") | _accounts(terminalreporter, "xfailed")
    passed: dict[tuple[str, str, str], int] = defaultdict(int)
    for account in failed | _accounts(terminalreporter, "passed"):
        suite, family, size, _ = account.split(":", 3)
        passed[suite, family, size] += account not in failed
    suites: dict[str, list[str]] = defaultdict(list)
    for (suite, family, size), count in sorted(passed.items()):
        suites[suite].append(f"{family} {count}/{size}")
    if suites:
        terminalreporter.section("conformance: cases that passed, of those the corpus has")
    for suite, families in suites.items():
        terminalreporter.line(f"{suite}: {', '.join(families)}")
