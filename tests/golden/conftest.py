"""Rendered reports as golden files: ``pytest tests/golden --rewrite-goldens`` writes them, the diff is reviewed."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "reports"


def pytest_addoption(parser):
    parser.addoption("--rewrite-goldens", action="store_true", help="write the golden files anew")


@pytest.fixture
def golden(request):
    """Compares a text with its golden file, or writes it."""
    rewrite = request.config.getoption("--rewrite-goldens", default=False)

    def check(name, text):
        path = FOLDER / name
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.exists(), f"{path} is missing: run pytest tests/golden --rewrite-goldens and review it"
        assert text == path.read_text(encoding="utf-8"), f"{name} changed: --rewrite-goldens, and review the diff"

    return check
