"""The rooms of architecture.md: which may import which, how large a file may be, and what ``import tvm_stof`` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tvm_stof"
MAX_LINES = 400

#: From the ground up: a room imports rooms of lower floors only. Rooms of one floor do not know each other, but for NEIGHBOURS.
FLOORS = (
    {"errors"},
    {"canonical", "expr"},
    {"masks", "scores"},
    {"problems"},
    {"reference", "testing", "sparsity", "targets", "definitions", "cascade", "native"},
    {"records", "codegen", "kernel_cache"},
    {"records.bridge"},
    {"rules", "build"},
    {"runtime", "search"},
    {"replay"},
    {"torch"},
    {"cli"},
)
NEIGHBOURS = {("cascade", "definitions")}
#: Upward, inside a function only: a score says which tensors it brings in the problems' own words.
UPWARD = {("scores", "problems")}
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

#: Rooms that are data and arithmetic and never import TVM, and rooms that do so only when they must.
NEVER_TVM = {"errors", "canonical", "expr", "scores", "problems", "sparsity", "reference", "testing", "records"}
LAZY_TVM = {"masks", "targets", "native", "kernel_cache", "build", "runtime", "replay", "cli"}


def rooms_of(path: Path) -> str:
    """``masks`` for tvm_stof/masks/causal.py; a module with a room of its own keeps its full name."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    whole = ".".join(parts)
    return whole if whole in LEVEL else parts[0]


SOURCES = [p for p in sorted(PACKAGE.rglob("*.py")) if rooms_of(p) not in ("__init__", "__main__")]


def imports(path: Path) -> Iterator[tuple[int, str, bool]]:
    """(line, absolute module or name in it, whether it runs at import) of every import, but those for type checkers."""
    package = path.relative_to(ROOT).with_suffix("").parts[: -1 if path.name != "__init__.py" else None]
    package = package[:-1] if path.name == "__init__.py" else package

    def walk(node: ast.AST, at_import: bool) -> Iterator[tuple[int, str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from ((child.lineno, alias.name, at_import) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = package[: len(package) - child.level + 1] if child.level else ()
                module = ".".join([*base, *([child.module] if child.module else [])])
                yield from ((child.lineno, f"{module}.{alias.name}", at_import) for alias in child.names)
            else:
                inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                yield from walk(child, at_import and not inside)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), True)


def room_imported(name: str) -> str | None:
    """The room an absolute name is in; None outside the package, and for names of the package itself (``__version__``)."""
    parts = name.split(".")
    if parts[0] != "tvm_stof":
        return None
    inner = [".".join(parts[1:n]) for n in range(len(parts), 1, -1)]
    return next((room for room in inner if room in LEVEL), None)


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_every_room_has_a_floor() -> None:
    unknown = {rooms_of(p) for p in SOURCES} - LEVEL.keys()
    assert not unknown, "put new rooms on a floor of FLOORS"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_go_down(path: Path) -> None:
    here = rooms_of(path)
    wrong = [
        f"{name_of(path)}:{line} imports {name}"
        for line, name, at_import in imports(path)
        for room in [room_imported(name)]
        if room is not None and room != here and LEVEL[room] >= LEVEL[here]
        if (here, room) not in NEIGHBOURS and (at_import or (here, room) not in UPWARD)
    ]
    assert not wrong


@pytest.mark.parametrize("path", [p for p in SOURCES if rooms_of(p) in NEVER_TVM | LAZY_TVM], ids=name_of)
def test_rooms_that_do_without_tvm(path: Path) -> None:
    late = rooms_of(path) in LAZY_TVM
    found = [(line, name) for line, name, at_import in imports(path) if name.split(".")[0] in ("tvm", "tvm_ffi")
             if at_import or not late]  # fmt: skip
    assert not found


def test_this_walk_sees_what_it_should(tmp_path: Path) -> None:
    found = {name: at_import for _, name, at_import in imports(PACKAGE / "targets" / "lookup.py")}
    assert found["tvm_stof.errors.explain"] is True
    assert found["tvm_stof.targets.probe.Machine"] is True
    assert found["tvm.target.codegen"] is False
    assert room_imported("tvm_stof.records.bridge.replay") == "records.bridge"
    assert room_imported("tvm_stof.records.find") == "records"
    assert room_imported("tvm_stof.__version__") is None


@pytest.mark.parametrize("folder", ["tvm_stof", "tests", "scripts"])
def test_no_file_is_too_long(folder: str) -> None:
    lengths = {str(p.relative_to(ROOT)): len(p.read_text(encoding="utf-8").splitlines()) for p in (ROOT / folder).rglob("*.py")}
    assert lengths
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_import_is_light() -> None:
    assert not modules_after("import tvm_stof") & {"tvm", "tvm_ffi", "numpy", "sympy", "torch", "xgboost", "click", "rich"}


def test_problems_masks_and_records_need_no_tvm() -> None:
    code = """
import tvm_stof
from tvm_stof import masks, records, reference, scores, testing, replay
p = tvm_stof.Attention(heads=2, q_len=8, head_dim=4, mask=masks.parse("causal & window(3)"), scores=(scores.Softcap(3.0),))
reference.expect(p, testing.inputs(p))
records.cli_text(p)
replay(["tests/assets"], 0)
"""
    assert not modules_after(code) & {"tvm", "tvm_ffi", "sympy", "torch", "xgboost"}


def test_process_that_forks_workers_for_a_gpu_loads_no_tvm() -> None:
    """TVM's libraries start the CUDA driver, which does not survive a fork."""
    code = """
import pickle, tvm_stof, tvm_stof.search.worker, tvm_stof.search.zygote
from tvm_stof import masks, scores, targets
from tvm_stof.search.task import Task
p = tvm_stof.Attention(heads=2, q_len=8, head_dim=4, mask=masks.parse("causal & window(3)"), scores=(scores.Softcap(3.0),))
pickle.loads(pickle.dumps(Task(p, targets.device("nvidia-h200"))))
"""
    assert not modules_after(code) & {"tvm", "tvm_ffi", "torch"}
