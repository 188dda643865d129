"""Runs every `fathom` command and every Python block of the README, in order, where a reader would run them."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Stops at the first that fails."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for language, body in re.findall(r"```(console|python)\n(.*?)```", text, flags=re.DOTALL):
        if language == "python":
            print(f">>> {body}", flush=True)
            subprocess.run([sys.executable, "-c", body], cwd=ROOT, check=True)
            continue
        for line in body.splitlines():
            if line.startswith("$ fathom "):
                print(line, flush=True)
                command = f"{Path(sys.executable).parent}/{line.removeprefix('$ ')}"
                subprocess.run(command, shell=True, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
