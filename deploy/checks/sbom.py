"""The software bill of materials of everything a deployment ships, as CycloneDX: `make sbom`.

syft reads the packages from the lock file, those with the servers that `make up` embeds among them. The images that
containers start from are listed by name and tag: what is inside them is in their makers' own bills.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OWN_IMAGE = "TIP_IMAGE"


def images() -> set[str]:
    """What the compose file and the Dockerfile start from by default."""
    files = (ROOT / "docker-compose.yml", ROOT / "deploy" / "Dockerfile")
    named = [found for file in files for found in re.findall(r"\b(\w+_IMAGE)(?:=|:-)([\w./:-]+)", file.read_text())]
    return {image for variable, image in named if variable != OWN_IMAGE}


def packages() -> dict[str, Any]:
    """The bill of the pinned packages. syft knows a file of requirements by its name."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "requirements.lock", Path(folder) / "requirements.txt")
        command = [str(Path(sys.executable).with_name("syft")), "scan", f"file:{folder}/requirements.txt", "--quiet"]
        made = subprocess.run(
            [*command, "--source-name", "trading-intents-platform", "--output", "cyclonedx-json"],
            env=os.environ | {"SYFT_CHECK_FOR_APP_UPDATE": "false"},
            stdout=subprocess.PIPE,
            check=True,
        )
    bill: dict[str, Any] = json.loads(made.stdout)
    return bill


def component(image: str) -> dict[str, str]:
    name, _, tag = image.rpartition(":")
    return {"type": "container", "bom-ref": f"image:{image}", "name": name, "version": tag}


def main(written: Path) -> None:
    bill = packages()
    bill["components"] = [*bill["components"], *map(component, sorted(images()))]
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps(bill, indent=2) + "\n")
    sys.stdout.write(f"{written}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
