"""What is installed is `onrecord` alone: other distributions own the names agent and gateway."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

SECONDS = 180
CODE = ("transcript", "projections", "agent", "gateway", "tests", "benchmarks")
ROOT_FILES = ("pyproject.toml", "README.md", "LICENSE", ".import/onrecord/__init__.py")


@pytest.fixture(scope="module")
def clone(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source, named as a clone is, as it looks where links can't be made."""
    copy = tmp_path_factory.mktemp("parent") / "onrecord"
    for folder in CODE:
        if (root / folder).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "results")
            shutil.copytree(root / folder, copy / folder, ignore=ignored)
    for name in (*ROOT_FILES, ".import/onrecord/py.typed"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, clone)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    offline = ("--no-deps", "--no-index", "--target", target)
    _run(sys.executable, "-m", "pip", "install", "-qq", *offline, wheel)
    return target


def test_the_wheel_has_one_top_level_package(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in _names(wheel)}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"onrecord"}


def test_the_wheel_holds_each_module_and_marker_once(
    wheel: Path, code: list[Any], pyproject: Mapping[str, Any]
) -> None:
    packages = pyproject["tool"]["setuptools"]["packages"]
    expected = {f"onrecord/{module.path.as_posix()}" for module in code}
    expected |= {"onrecord/__init__.py"}
    expected |= {f"{package.replace('.', '/')}/py.typed" for package in packages}
    inside = [name for name in _names(wheel) if ".dist-info/" not in name]

    assert sorted(inside) == sorted(expected)


def test_the_wheel_carries_its_licence_and_entry_points(wheel: Path) -> None:
    (entries,) = (name for name in _names(wheel) if name.endswith("entry_points.txt"))
    text = zipfile.ZipFile(wheel).read(entries).decode()

    assert any(name.endswith("licenses/LICENSE") for name in _names(wheel))
    assert "onrecord = onrecord.projections.cli:main" in text
    assert "[onrecord.commands]" in text


def test_the_build_leaves_no_trace_but_its_own_folders(wheel: Path, clone: Path) -> None:
    made = {path.name for path in clone.iterdir()}

    assert wheel.exists()
    assert not [name for name in made if name.endswith(".egg-info")]


def test_the_installed_wheel_is_imported_beside_a_clone_of_its_name(
    installed: Path, clone: Path
) -> None:
    program = (
        "import json, onrecord; print(json.dumps([onrecord.__file__, onrecord.__version__,"
        " {name: getattr(onrecord, name).__name__ for name in onrecord._PUBLIC}]))"
    )
    file, version, names = json.loads(
        _run(sys.executable, "-c", program, cwd=clone.parent, PYTHONPATH=str(installed))
    )

    assert Path(file) == installed / "onrecord" / "__init__.py"
    assert version == metadata.version("onrecord")
    assert names["TranscriptLog"] == "TranscriptLog"


def test_nothing_of_ours_is_importable_without_the_namespace(installed: Path) -> None:
    program = (
        "from importlib.util import find_spec\n"
        "print([name for name in ('agent', 'gateway', 'projections', 'transcript', 'tests')"
        " if find_spec(name)])"
    )

    found = _run(sys.executable, "-c", program, cwd=installed, PYTHONPATH=str(installed))

    assert found.strip() == "[]"


def _names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def _run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
