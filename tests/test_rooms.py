"""The walls between the rooms: which package may import which, read off the import statements."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "acp_subagent"
FAKE = PACKAGE.parent / "fake_acp_server"

#: what each room may import, besides itself
ALLOWED = {
    "errors": set(),
    "version": set(),
    "seam": {"errors"},
    "wire": {"errors"},
    "process": {"errors", "seam.activity"},
    "supervised": {"errors", "seam", "wire", "process"},
    "acp": {"errors", "version", "seam", "wire", "process", "supervised"},
    "dsh": {"errors", "seam", "wire", "process", "supervised"},
    "delegate": {"errors", "seam"},
    "cli": {"errors", "version", "seam", "wire", "process", "supervised", "acp", "dsh", ""},
}

#: inside a room only downwards: an import may only go to a file further up in this list
ORDER = {
    "seam": [
        "activity",
        "content",
        "request",
        "capabilities",
        "diagnostic",
        "events",
        "feed",
        "result",
        "lifecycle",
        "cancellation",
        "leaving",
        "run",
        "service",
    ],
    "supervised": [
        "ending",
        "claims",
        "advice",
        "reading",
        "verdicts",
        "output",
        "tool_calls",
        "clock",
        "settings",
        "config",
        "stderr",
        "conversation",
        "asking",
        "tasks",
        "hurry",
        "line",
        "reporting",
        "preparation",
        "turn",
        "opening",
        "ladder",
        "chain",
        "run",
    ],
}

#: files that wait for nothing and read nothing
SANS_IO = [
    "wire/frames.py",
    "wire/jsonrpc.py",
    "acp/session.py",
    "acp/permissions.py",
    "acp/classify.py",
    "acp/failure_table.py",
    "supervised/output.py",
    "supervised/tool_calls.py",
    "acp/session_state.py",
    "acp/tool_calls.py",
    "dsh/tool_calls.py",
    "dsh/activity.py",
    "dsh/classify.py",
    "dsh/vocabulary.py",
    "supervised/clock.py",
    "supervised/ending.py",
    "supervised/verdicts.py",
    "seam/diagnostic.py",
    "delegate/outcome.py",
    "delegate/definition.py",
    "delegate/arguments.py",
]


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports when it runs; what only a type checker reads is left out."""

    def walk(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: imports are absolute"
                module = child.module or ""
                yield module
                yield from (f"{module}.{alias.name}" for alias in child.names)
            else:
                yield from walk(child)

    yield from walk(ast.parse(path.read_text()))


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_only_what_its_room_may(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room in {"__init__", "__main__"}:
        return
    for module in imports(path):
        if not module.startswith("acp_subagent"):
            continue
        inner = module.removeprefix("acp_subagent").removeprefix(".")
        target = inner.split(".")[0]
        if target == room or (target == "" and "" in ALLOWED[room]):
            continue
        permitted = any(inner == name or inner.startswith(f"{name}.") for name in ALLOWED[room])
        parent_of_permitted = any(name.startswith(f"{inner}.") for name in ALLOWED[room])
        assert permitted or parent_of_permitted, f"{room} may not import {module}"


@pytest.mark.parametrize("room", sorted(ORDER))
def test_inside_a_room_imports_go_downwards(room: str) -> None:
    order = ORDER[room]
    found = {path.stem for path in (PACKAGE / room).glob("*.py")} - {"__init__"}
    assert found == set(order), "the list of this test names every file of the room"
    for position, name in enumerate(order):
        for module in imports(PACKAGE / room / f"{name}.py"):
            target = module.removeprefix(f"acp_subagent.{room}.").split(".")[0]
            if module.startswith(f"acp_subagent.{room}.") and target in order:
                assert order.index(target) < position, f"{room}/{name}.py imports {target}.py"


def test_no_imports_go_in_circles() -> None:
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files()}
    graph = {name: {m for m in imports(path) if m in names.values()} for path, name in names.items()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for target in graph[name]:
                visit(target, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("name", SANS_IO)
def test_a_sans_io_file_never_imports_trio(name: str) -> None:
    assert not [module for module in imports(PACKAGE / name) if module.split(".")[0] == "trio"]


def test_the_sans_io_files_do_not_load_trio_by_way_of_others_either() -> None:
    modules = [f"acp_subagent.{name.removesuffix('.py').replace('/', '.')}" for name in SANS_IO]
    code = f"import sys, {', '.join(modules)}; sys.exit('trio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, timeout=60, check=False)
    assert done.returncode == 0


def test_only_one_file_knows_psutil_and_one_knows_jsonrpcclient() -> None:
    for library, home in (("psutil", "process/table.py"), ("jsonrpcclient", "wire/jsonrpc.py")):
        users = [path for path in files() if any(m.split(".")[0] == library for m in imports(path))]
        assert users == [PACKAGE / home]


def test_nurseries_are_opened_only_where_runs_are_owned() -> None:
    openers = {
        str(path.relative_to(PACKAGE)).split("/")[0]
        for path in files()
        if "open_nursery(" in path.read_text() and path.name != "service.py"
        if path.relative_to(PACKAGE).as_posix() != "delegate/jobs.py"
    }
    assert openers <= {"supervised", "cli"}


def test_the_fake_imports_neither_the_library_nor_trio() -> None:
    for path in sorted(FAKE.rglob("*.py")):
        roots = {module.split(".")[0] for module in imports(path)}
        assert not roots & {"acp_subagent", "trio"}, path
        assert roots <= {*sys.stdlib_module_names, "fake_acp_server", "pydantic", "pytest"}, path


def test_the_watchdog_needs_the_standard_library_only() -> None:
    for name in ("reaper.py", "procfs.py"):
        roots = {module.split(".")[0] for module in imports(PACKAGE / "process" / name)}
        assert roots <= {*sys.stdlib_module_names, "acp_subagent"}, name


def test_every_public_name_is_there_and_the_two_lists_agree() -> None:
    import acp_subagent

    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    for_type_checkers = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert for_type_checkers == set(acp_subagent.__all__)
    for name in acp_subagent.__all__:
        assert getattr(acp_subagent, name) is not None
    with pytest.raises(AttributeError):
        _ = acp_subagent.no_such_name
