# SPDX-License-Identifier: Apache-2.0
"""Packing problems of plan_oracle, solved again by programs that are not ours.

plan_packings.py glpsol|cbc PLAN_ORACLE FIRST COUNT: checks so many seeds, a
packing each, and prints those that disagree."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile


def as_lp(problem):
    """The problem in CPLEX's format: how many servers of each column."""
    columns = problem["columns"]
    names = [f"y{i}" for i in range(len(columns))]
    cost = [f"{c[3]:g} {name}" for c, name in zip(columns, names, strict=True)]
    loaded = {
        (row, kind): servers
        for row, kinds in enumerate(problem["loaded"])
        for kind, servers in enumerate(kinds)
    }
    loads = {key: f"l{key[0]}_{key[1]}" for key in loaded}
    cost += [f"{problem['load_cost']:.0f} {name}" for name in loads.values()]
    lines = ["Minimize", " cost: " + " + ".join(cost or ["0 none"]), "Subject To"]

    def limit(terms, relation, bound):
        if terms:
            total = " + ".join(terms).replace("+ -", "- ")
            lines.append(f" c{len(lines)}: {total} {relation} {bound}")
        elif relation == "=" and bound:
            lines.append(f" c{len(lines)}: none >= 1")

    for row, demand in enumerate(problem["demand"]):
        own = [i for i, c in enumerate(columns) if c[0] == row]
        limit([f"{columns[i][2]} {names[i]}" for i in own], "=", demand)
        if problem["servers"][row]:
            limit([names[i] for i in own], "<=", problem["servers"][row])
    for kind, gpus in enumerate(problem["gpus"]):
        limit([names[i] for i, c in enumerate(columns) if c[1] == kind], "<=", gpus)
    for key, servers in loaded.items():
        own = [names[i] for i, c in enumerate(columns) if (c[0], c[1]) == key]
        limit(own and [*own, f"-{loads[key]}"], "<=", servers)
    whole = " ".join([*names, *loads.values()])
    lines += ["Bounds", " none = 0", "Generals", " none " + whole, "End"]
    return "\n".join(lines) + "\n"


def run(*command):
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120
    )
    return done.stdout


def by_glpsol(path):
    answer = path.with_suffix(".sol")
    run("glpsol", "--lp", str(path), "--write", str(answer), "--cuts")
    status = re.search(r"^s mip \d+ \d+ (\w) (\S+)", answer.read_text(), re.MULTILINE)
    return float(status[2]) if status and status[1] == "o" else None


def by_cbc(path):
    answer = path.with_suffix(".sol")
    run("cbc", str(path), "solve", "solution", str(answer))
    first = answer.read_text().splitlines()[0]
    if "Infeasible" in first or "infeasible" in first:
        return None
    return float(first.split()[-1])


SOLVERS = {"glpsol": by_glpsol, "cbc": by_cbc}


def disagreements(solver, oracle, first, count):
    """Those whose feasibility or cost differs, with both answers."""
    problems = run(str(oracle), "packings", str(first), str(count)).splitlines()
    assert len(problems) == count, f"{oracle} failed"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "packing.lp"
        for seed, line in enumerate(problems, first):
            problem = json.loads(line)
            path.write_text(as_lp(problem))
            theirs, ours = SOLVERS[solver](path), problem["cost"]
            if ours is not None:
                ours += problem["loads"] * problem["load_cost"]
            same = (ours is None) == (theirs is None)
            if not same or (ours is not None and abs(ours - theirs) > 0.01):
                yield seed, ours, theirs


def main():
    solver, oracle, first, count = sys.argv[1:]
    wrong = list(disagreements(solver, oracle, int(first), int(count)))
    for seed, ours, theirs in wrong:
        print(f"seed {seed}: ours {ours}, {solver}'s {theirs}")
    print(f"{count} packings from seed {first} on, {len(wrong)} disagree with {solver}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
