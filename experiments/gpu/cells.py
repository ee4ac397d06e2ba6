"""A paper's experiment as cells that run one after the other. One that fails is told and left out, and the rest goes on; the report is
written anew behind each, so that whatever ends the run leaves what there was."""

import dataclasses
import re
import time
from collections.abc import Callable

from exhibit import Reproduction
from simulation import Failed


@dataclasses.dataclass
class Cell:
    """One measurement. Cells in a row with equal `node`, the keys of Machine.node(), share one."""

    name: str
    node: dict
    run: Callable  # of the Node; returns what Plan.report is to have under the name
    told: Callable = str  # of that: one line for people
    is_fresh: bool = False  # whether it needs a node that nothing ran on


@dataclasses.dataclass
class Plan:
    cells: list[Cell]
    report: Callable[[dict], Reproduction]  # of results by the cells' names: of some of them, or of none


class Nodes:
    """The node of the last cell, as long as the next one wants the same and nothing failed on it."""

    def __init__(self, machine):
        self.machine, self.keys, self.node = machine, None, None

    def for_cell(self, cell):
        if self.node is None or self.keys != cell.node or cell.is_fresh:
            self.close()
            self.node = self.machine.node(**cell.node).__enter__()
            self.keys = cell.node
        return self.node

    def close(self):
        node, self.node = self.node, None
        if node is not None:
            node.__exit__()


def chosen(cells, only):
    """Those whose names the regular expression finds itself in; all without one."""
    found = [cell for cell in cells if not only or re.search(only, cell.name)]
    if not found:
        raise Failed(f"no cell is called '{only}': there are {', '.join(cell.name for cell in cells)}")
    return found


def run(plan, machine, only=None, limit=None, say=print, write=lambda made: None):
    """The reproduction of the cells chosen, `write` told of it behind each. None is begun `limit` seconds after the first."""
    results, not_run = {}, []
    begin, nodes = time.monotonic(), Nodes(machine)

    def made():
        reproduction = plan.report(results)
        reproduction.not_run = list(not_run)
        return reproduction

    def leave_out(cell, why):
        why = " ".join(why.split())
        not_run.append(f"{cell.name}: {why}")
        say(f"{cell.name}: did not run: {why}")

    try:
        for cell in chosen(plan.cells, only):
            since = time.monotonic()
            if limit and since - begin > limit:
                leave_out(cell, f"the {limit:.0f} s that this may take (--limit) were over")
                continue
            try:
                results[cell.name] = cell.run(nodes.for_cell(cell))
                say(f"{cell.name}: {cell.told(results[cell.name])} ({time.monotonic() - since:.1f} s)")
            except (Failed, OSError, KeyError, ValueError) as error:
                leave_out(cell, f"{type(error).__name__}: {error}" if not isinstance(error, Failed) else str(error))
                nodes.close()
            write(made())
    finally:
        nodes.close()
    return made()
