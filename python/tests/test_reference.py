"""docs/python-api.md, made from the docstrings."""

from __future__ import annotations

import importlib.util
import pathlib
import types

import pytest

import hapax

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "reference.py"


@pytest.fixture
def reference() -> types.ModuleType:
    specification = importlib.util.spec_from_file_location("reference", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_page_is_current(reference: types.ModuleType) -> None:
    assert reference.PAGE.read_text() == reference.page(), "run: python python/reference.py"


def test_every_public_name_is_on_it(reference: types.ModuleType) -> None:
    assert set(hapax.__all__) == {
        name for _, module, names in reference.SECTIONS for name in names if module == "hapax"
    }


def test_a_name_without_a_docstring_is_an_error(reference: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hapax.WorkflowHandle.update, "__doc__", None)
    with pytest.raises(reference.Undocumented, match=r"WorkflowHandle\.update has no docstring"):
        reference.page()
