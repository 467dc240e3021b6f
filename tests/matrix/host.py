"""A host that is going to be killed: brings one cell to its moment and waits.

Run as `python -m tests.matrix.host TREE HABIT MOMENT WAY FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from acp_subagent import open_subagents
from tests.matrix.cells import Cell, Habit, Moment, Tree, Way
from tests.matrix.life import LifeSocket
from tests.matrix.play import Scene


async def main() -> None:
    tree, habit, moment, way, folder = sys.argv[1:]
    cell = Cell(Tree(tree), Habit(habit), Moment(moment), Way(way))
    life = LifeSocket(Path(folder))
    scene = Scene(cell, Path(folder), life)

    async def tell_that_it_asked() -> None:
        await scene.asked.wait()
        (Path(folder) / "asked").touch()

    with trio.move_on_after(60):  # it ends by itself if nobody kills it
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell_that_it_asked)
            async with open_subagents() as subagents:
                subagents.register(scene.provider())
                await subagents.start("fake", scene.request())
                await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main)
