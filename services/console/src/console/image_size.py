"""How wide and high a WebP file is, so that a page keeps its place for it."""

from pathlib import Path

_HEADER_BYTES = 30


def image_size(file: Path) -> tuple[int, int]:
    """Width and height, by the header of the extended format."""
    with file.open("rb") as content:
        header = content.read(_HEADER_BYTES)
    if header[:4] + header[8:16] != b"RIFFWEBPVP8X":
        raise ValueError(f"{file.name} is no WebP file of the extended format")
    return int.from_bytes(header[24:27], "little") + 1, int.from_bytes(header[27:30], "little") + 1
