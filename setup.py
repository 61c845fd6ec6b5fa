"""Puts the recipes into the wheel, as `synmt/recipes`; everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithRecipes(build_py):
    """Copies `recipes/` of the checkout into the package; an editable installation reads it where it is."""

    def run(self) -> None:
        """Build as usual, then copy."""
        super().run()
        if self.editable_mode:
            return
        # what an earlier build left there may have gone from the checkout
        shutil.rmtree(Path(self.build_lib, "synmt", "recipes"), ignore_errors=True)
        for path in sorted(Path("recipes").rglob("*.yaml")):
            target = Path(self.build_lib, "synmt", path)
            self.mkpath(str(target.parent))
            self.copy_file(str(path), str(target))


setup(cmdclass={"build_py": BuildWithRecipes})
