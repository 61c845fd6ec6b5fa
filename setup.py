"""Puts recipes and documentation into the wheel, below `synmt/`; everything else is in
pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithTexts(build_py):
    """Copies `recipes/` and `docs/` of the checkout into the package; an editable installation
    reads them in place."""

    def run(self) -> None:
        """Build as usual, then copy."""
        super().run()
        if self.editable_mode:
            return
        for folder, ending in (("recipes", "yaml"), ("docs", "md")):
            # what an earlier build left there may have gone from the checkout
            shutil.rmtree(Path(self.build_lib, "synmt", folder), ignore_errors=True)
            for path in sorted(Path(folder).rglob(f"*.{ending}")):
                target = Path(self.build_lib, "synmt", path)
                self.mkpath(str(target.parent))
                self.copy_file(str(path), str(target))


setup(cmdclass={"build_py": BuildWithTexts})
