"""The example runs as it stands."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "study.py"


def test_the_study_example_runs(tmp_path):
    done = subprocess.run([sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"WRED_PROFILE"' in done.stdout and "K = 65 packets" in done.stdout
    assert "<svg" in (tmp_path / "study" / "report.html").read_text()
    assert (tmp_path / "study" / "surrogate.weir").exists()
