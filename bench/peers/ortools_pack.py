# SPDX-License-Identifier: Apache-2.0
"""OR-Tools on the packing problems of `tendon bench plan`.

ortools_pack.py FILE: the file has a line for each problem, "gpus rows columns",
then the rows' demands, then "row units cost" for each column. A block solves
each once; its numbers are, for each, the milliseconds to build the model, those
of the solver alone, and the cost."""

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


def build(gpus, demands, columns):
    solver = pywraplp.Solver.CreateSolver("SCIP")
    counts = [solver.IntVar(0, gpus, "") for _ in columns]
    solver.Add(sum(counts) <= gpus)
    for row, demand in enumerate(demands):
        own = [c[1] * n for c, n in zip(columns, counts, strict=True) if c[0] == row]
        solver.Add(sum(own) == demand)
    solver.Minimize(sum(c[2] * n for c, n in zip(columns, counts, strict=True)))
    return solver


def solve(solver):
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return -1
    return solver.Objective().Value()


def timed(work, *arguments):
    start = time.perf_counter()
    result = work(*arguments)
    return 1e3 * (time.perf_counter() - start), result


def main():
    hold_signals()
    problems = list(read_problems(sys.argv[1]))

    def block():
        for problem in problems:
            model_ms, solver = timed(build, *problem)
            yield model_ms
            yield from timed(solve, solver)

    run_blocks(block)


main()
