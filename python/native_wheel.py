"""Puts the engine and the program into the wheel, if $HAPAX_NATIVE names the folder that has them."""

from __future__ import annotations

import os
import pathlib
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeWheel(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("HAPAX_NATIVE")
        if not folder:
            return
        for name in ("libhapax_capi.so", "hapax"):
            build_data["force_include"][str(pathlib.Path(folder) / name)] = f"hapax/_native/{name}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
