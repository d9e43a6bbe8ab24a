"""What a cluster's workers get from kview: the kernel, as a file of modules."""

import zipfile
from pathlib import Path

import kview
from kview.model import sums

KERNEL = Path(__file__).parent / "kernel"


def packed_kernel(folder: Path) -> Path:
    """Write the kernel as a zip file to `folder`, and return its path.

    Its packages are empty around it, so that nothing but the kernel is imported. Raises OSError.
    """
    root = Path(kview.__file__).parent.parent
    path = folder / "kview-kernel.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for package in ("kview", "kview/model", "kview/pipeline"):
            packed.writestr(f"{package}/__init__.py", "")
        for file in (Path(sums.__file__), *sorted(KERNEL.glob("*.py"))):
            packed.write(file, file.relative_to(root))
    return path
