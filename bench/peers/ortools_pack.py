# SPDX-License-Identifier: Apache-2.0
"""OR-Tools on the packing problems of `tendon bench plan`.

ortools_pack.py FILE: the file has a line for each problem, "gpus rows columns",
then the rows' demands, then "row units cost" for each column. A block solves
each once; its numbers are the milliseconds of its own and the cost of each."""

import pathlib
import sys
import time

from blocks import hold_signals, run_blocks
from ortools.linear_solver import pywraplp


def read_problems(path):
    numbers = iter(map(float, pathlib.Path(path).read_text().split()))
    for gpus in numbers:
        rows, columns = int(next(numbers)), int(next(numbers))
        demands = [next(numbers) for _ in range(rows)]
        yield (
            gpus,
            demands,
            [tuple(next(numbers) for _ in range(3)) for _ in range(columns)],
        )


def solve(gpus, demands, columns):
    solver = pywraplp.Solver.CreateSolver("SCIP")
    counts = [solver.IntVar(0, gpus, "") for _ in columns]
    solver.Add(sum(counts) <= gpus)
    for row, demand in enumerate(demands):
        own = [c[1] * n for c, n in zip(columns, counts, strict=True) if c[0] == row]
        solver.Add(sum(own) == demand)
    solver.Minimize(sum(c[2] * n for c, n in zip(columns, counts, strict=True)))
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return -1
    return solver.Objective().Value()


def main():
    hold_signals()
    problems = list(read_problems(sys.argv[1]))

    def block():
        for problem in problems:
            start = time.process_time()
            cost = solve(*problem)
            yield 1e3 * (time.process_time() - start)
            yield cost

    run_blocks(block)


main()
