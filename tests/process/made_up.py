"""A process table that is made up, and one tree in it."""

from __future__ import annotations

from acp_subagent.process.census import Census
from acp_subagent.process.procfs import ProcessFacts
from acp_subagent.process.tree import Birth, Tree

LEADER = 100


class Table:
    """A process table made of the rows it is given."""

    def __init__(self) -> None:
        self.rows: dict[int, ProcessFacts] = {}
        self.cookies: dict[int, bytes | None] = {}

    def add(
        self,
        pid: int,
        *,
        parent: int = 1,
        session: int | None = None,
        start: int = 50,
        cookie: bytes | None = b"",
        state: str = "S",
        threads: int = 1,
    ) -> ProcessFacts:
        row = ProcessFacts(
            pid,
            parent,
            group=pid,
            session=pid if session is None else session,
            state=state,
            threads=threads,
            start=start,
        )
        self.rows[pid] = row
        self.cookies[pid] = cookie
        return row

    def sessions(self) -> dict[int, int]:
        return {pid: row.session for pid, row in self.rows.items()}

    def newest(self) -> int | None:
        return None

    def newer(self, number: int) -> dict[int, int] | None:
        return {pid: session for pid, session in self.sessions().items() if pid > number}

    def facts(self, pid: int) -> ProcessFacts | None:
        return self.rows.get(pid)

    def cookie(self, facts: ProcessFacts) -> bytes | None:
        return self.cookies[facts.pid]

    def children(self, pid: int) -> list[int]:
        return [row.pid for row in self.rows.values() if row.parent == pid]

    def now(self) -> int:
        return 50


class Scene:
    """A table, a census of it, and one tree whose leader was spawned after a first look."""

    def __init__(self) -> None:
        self.table = Table()
        self.table.add(10, start=1)
        self.census = Census(self.table)
        self.census.look()
        self.tree = self.spawn(LEADER, "/s.1/")

    def spawn(self, pid: int, element: str) -> Tree:
        leader = self.table.add(pid, cookie=element.rstrip("/").encode())
        return Tree(self.census, element=element, birth=Birth(50, self.census.looks), leader=leader)

    def members(self) -> set[int]:
        self.tree.look(self.census.look())
        return set(self.tree.alive)
