"""Playing one cell: set the scene, wait for its moment, end it its way, and prove that nobody is left."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from acp_subagent import (
    AcpConfig,
    AcpProvider,
    Parent,
    SubagentAbortedError,
    SubagentRequest,
    SubagentRun,
    SubagentService,
    SubagentStartError,
    open_subagents,
)
from tests.matrix.cells import Cell, Habit, Moment, Tree, Way
from tests.matrix.life import LifeSocket
from tests.support.marks import marked

REPOSITORY = Path(__file__).resolve().parents[2]

GRACES = {
    "cancel_grace_seconds": 0.3,
    "close_grace_seconds": 0.3,
    "eof_grace_seconds": 0.4,
    "term_grace_seconds": 0.4,
    "kill_grace_seconds": 5.0,
    "exit_observation_seconds": 0.3,
}
#: All the graces together, and what a busy machine may add.
CALL_BOUND_SECONDS = sum(GRACES.values()) + 8.0
#: After the host has been killed.
ORPHAN_BOUND_SECONDS = 2.0 + 8.0
#: For the scene to be set.
SCENE_BOUND_SECONDS = 60.0

_CHILDREN: dict[Tree, list[dict[str, Any]]] = {
    Tree.PLAIN: [{"kind": "plain"}],
    Tree.IGNORES_TERM: [{"kind": "plain", "ignore_term": True}],
    Tree.LAUNCHER_EXITS: [{"kind": "launcher-exits"}],
    Tree.LAUNCHER_STAYS: [{"kind": "launcher-stays"}],
    Tree.DOUBLE_FORK: [{"kind": "double-fork"}],
    Tree.SETSID: [{"kind": "setsid"}],
    Tree.SETSID_IGNORES_TERM: [{"kind": "setsid", "ignore_term": True}],
    Tree.OWN_GROUP: [{"kind": "own-group"}],
    Tree.CLOSED: [{"kind": "closed"}],
    Tree.STOPPED: [{"kind": "stopped", "ignore_term": True}],
    Tree.HOLDS_STDOUT: [{"kind": "holds-stdout"}],
    Tree.FORK_LOOP: [{"kind": "fork-loop", "every_seconds": 0.05}],
    Tree.RELAY: [{"kind": "relay", "every_seconds": 0.02}],
    Tree.SETSID_RELAY: [{"kind": "setsid-relay", "every_seconds": 0.02}],
}
_CHILDREN[Tree.CROWD] = [
    child
    for tree in (
        Tree.IGNORES_TERM,
        Tree.LAUNCHER_STAYS,
        Tree.DOUBLE_FORK,
        Tree.SETSID_IGNORES_TERM,
        Tree.CLOSED,
        Tree.STOPPED,
        Tree.HOLDS_STDOUT,
    )
    for child in _CHILDREN[tree]
]
_LAUNCHERS = {Tree.BEHIND_LAUNCHER: "stays", Tree.LEFT_BY_LAUNCHER: "exits"}


class CellError(AssertionError):
    """A cell did not end as it must."""


@dataclass
class Scene:
    """Everything that playing one cell needs."""

    cell: Cell
    folder: Path
    life: LifeSocket
    asked: trio.Event = field(default_factory=trio.Event)  #: the permission handler was called
    abort: trio.Event = field(default_factory=trio.Event)

    @property
    def mark(self) -> str:
        """An entry of the environment that all processes of the cell inherit."""
        return f"MATRIX_CELL={self.folder}"

    @property
    def processes(self) -> int:
        """How many connections there are once the scene is set."""
        return 1 + len(_CHILDREN.get(self.cell.tree, []))

    def scenario(self) -> dict[str, Any]:
        """What the agent plays."""
        cell = self.cell
        steps: list[dict[str, Any]] = [
            {"child": {**child, "connect": self.life.path}} for child in _CHILDREN.get(cell.tree, [])
        ]
        steps.append({"touch_file": str(self.folder / "set")})
        if cell.way is Way.EXIT:
            steps += [{"wait_file": str(self.folder / "go")}, {"exit": 3}]
        elif cell.way is Way.SIGNAL:
            steps += [{"wait_file": str(self.folder / "go")}, {"signal": "KILL"}]
        scenario: dict[str, Any] = {
            "life_socket": self.life.path,
            "on_cancel": "silent" if cell.habit is Habit.IGNORES_TERM else "cancelled",
        }
        if cell.tree in _LAUNCHERS:
            scenario["launcher"] = _LAUNCHERS[cell.tree]
        if cell.habit is not Habit.OBEDIENT:
            scenario["start"] = [{"ignore_eof": True}]
        if cell.habit is Habit.IGNORES_TERM:
            scenario["start"].append({"ignore_term": True})
        match cell.moment:
            case Moment.INITIALIZE:
                scenario["initialize"] = {"before_answer": steps, "no_answer": True}
            case Moment.NEW_SESSION:
                scenario["session_new"] = {"before_answer": steps, "no_answer": True}
            case Moment.TURN:
                scenario["turns"] = [[{"text": "begun"}, *steps, {"wait_cancel": True}]]
            case Moment.PERMISSION:
                ask = {"permission": {"tool_call": {"toolCallId": "c"}, "wait": False}}
                scenario["turns"] = [[ask, *steps, {"wait_requests": True}, {"wait_cancel": True}]]
            case Moment.IDLE:
                scenario["turns"] = [[{"text": "done"}, {"stop": "end_turn"}, *steps]]
        return scenario

    def provider(self) -> AcpProvider:
        """The provider of the agent."""

        async def think(request: object) -> object:
            self.asked.set()
            await trio.sleep_forever()
            return "deny"

        return AcpProvider(
            AcpConfig(
                name="fake",
                command=sys.executable,
                args=["-m", "fake_acp_server", "--json", json.dumps(self.scenario())],
                cwd=str(self.folder),
                env={"PYTHONPATH": str(REPOSITORY), **dict([self.mark.split("=", 1)])},
                permission="ask",
                permission_handler=think,
                **GRACES,
            )
        )

    def request(self) -> SubagentRequest:
        """The request of the cell."""
        return SubagentRequest(prompt="go", parent=Parent(cwd=str(self.folder)), abort=self.abort)

    async def set(self) -> None:
        """Wait until everybody is in place and the moment has come."""
        with trio.fail_after(SCENE_BOUND_SECONDS):
            while not (self.folder / "set").exists():  # noqa: ASYNC110  another process writes it
                await trio.sleep(0.01)
            await self.life.met_all(self.processes)
            if self.cell.moment is Moment.PERMISSION:
                await self.asked.wait()

    def go(self) -> None:
        """Let the agent end by itself."""
        (self.folder / "go").touch()


async def play(cell: Cell, folder: Path) -> None:
    """Play one cell; raises `CellError` when a call takes too long or somebody is left."""
    await trio.Path(folder).mkdir(parents=True)
    async with trio.open_nursery() as nursery:
        life = LifeSocket(folder)
        await nursery.start(life.serve)
        scene = Scene(cell, folder, life)
        if cell.way is Way.HOST_KILLED:
            await _kill_host(scene)
        else:
            await _in_this_process(scene)
        with trio.move_on_after(1.0):
            await life.all_dead()
        if life.alive:
            raise CellError(f"{cell}: {life.alive} processes are left")
        if marked(scene.mark):
            raise CellError(f"{cell}: processes with the mark of the cell are left")
        nursery.cancel_scope.cancel()


async def _in_this_process(scene: Scene) -> None:
    ended_at = 0.0

    def now_ends() -> None:
        nonlocal ended_at
        ended_at = trio.current_time()

    async with open_subagents(reaper=False) as subagents:
        subagents.register(scene.provider())
        if scene.cell.moment in {Moment.INITIALIZE, Moment.NEW_SESSION}:
            await _end_a_start(scene, subagents, now_ends)
        else:
            await _end_a_run(scene, subagents, now_ends)
        if scene.cell.way is Way.CLOSE:
            now_ends()
    took = trio.current_time() - ended_at
    if took > CALL_BOUND_SECONDS:
        raise CellError(f"{scene.cell}: the call took {took:.1f} s")


async def _end_a_start(scene: Scene, subagents: SubagentService, now_ends: Callable[[], None]) -> None:
    way, scope = scene.cell.way, trio.CancelScope()

    async def start() -> None:
        with scope:
            try:
                await subagents.start("fake", scene.request())
            except (SubagentStartError, SubagentAbortedError):
                return
            raise CellError(f"{scene.cell}: the start did not fail")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(start)
        if scene.cell.tree is Tree.LEFT_BY_LAUNCHER:
            now_ends()  # the exit of the started process is the end, whoever it has left
            return
        await scene.set()
        now_ends()
        match way:
            case Way.EXIT | Way.SIGNAL:
                scene.go()
            case Way.ABORT:
                scene.abort.set()
            case _:  # a start has nothing to dispose and no block of its own: its caller gives up
                scope.cancel()


async def _end_a_run(scene: Scene, subagents: SubagentService, now_ends: Callable[[], None]) -> None:
    scope = trio.CancelScope()
    with scope:
        run = await subagents.start("fake", scene.request())
        await scene.set()
        if scene.cell.moment is Moment.IDLE:
            result = await run.result()
            if result.text != "done":
                raise CellError(f"{scene.cell}: the answer was lost")
        if scene.cell.way is Way.CLOSE:
            return
        now_ends()
        await _end(scene, run, scope)


async def _end(scene: Scene, run: SubagentRun, scope: trio.CancelScope) -> None:
    match scene.cell.way:
        case Way.CANCEL:
            run.cancel()
            await run.result()
        case Way.ABORT:
            scene.abort.set()
            await run.result()
        case Way.EXIT | Way.SIGNAL:
            scene.go()
            await run.result()
        case Way.SCOPE:
            async with run:
                scope.cancel()
                await trio.lowlevel.checkpoint()
    report = await run.dispose()
    if not report.clean:
        raise CellError(f"{scene.cell}: {report.survivors} survivors, exit {report.exit_status}")


async def _kill_host(scene: Scene) -> None:
    """Run the scene in a host of its own, kill it, and let the watchdog do its work."""
    host = await trio.lowlevel.open_process(
        [sys.executable, "-m", "tests.matrix.host", *astuple_text(scene.cell), str(scene.folder)],
        cwd=REPOSITORY,
    )
    try:
        await scene_set_by_host(scene)
    finally:
        os.kill(host.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await host.wait()
    if scene.cell.way in {Way.EXIT, Way.SIGNAL}:
        scene.go()
    with trio.move_on_after(ORPHAN_BOUND_SECONDS) as bound:
        await scene.life.all_dead()
        # A launcher has no connection: nobody tells of its death.
        while marked(scene.mark):  # noqa: ASYNC110
            await trio.sleep(0.01)
    if bound.cancelled_caught:
        raise CellError(f"{scene.cell}: {scene.life.alive} processes outlive their killed host")


async def scene_set_by_host(scene: Scene) -> None:
    """Wait for the scene, when the permission handler is another process's."""
    if scene.cell.moment is Moment.PERMISSION:
        with trio.fail_after(SCENE_BOUND_SECONDS):
            while not (scene.folder / "asked").exists():  # noqa: ASYNC110  another process writes it
                await trio.sleep(0.01)
        scene.asked.set()
    await scene.set()


def astuple_text(cell: Cell) -> tuple[str, ...]:
    """The values of a cell as arguments."""
    return (cell.tree, cell.habit, cell.moment, cell.way)
