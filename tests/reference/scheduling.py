# SPDX-License-Identifier: Apache-2.0
"""docs/scheduling.md in Python, read off the page and not off the C."""

import dataclasses
import math

MS = 1_000_000
HURRY = 50 * MS
STEPS = {0: 15.0, 1: 10.5, 2: 10.5, 3: 6.0, 4: 6.0}
#: Points that are nearer to each other are equal: rounding.
EQUAL = 1e-6


@dataclasses.dataclass
class Member:
    model: int
    queued: bool
    highest_priority: int
    max_urgency: float
    budget: int
    turn: int = 0  #: when one of its was last started, or it joined
    expected: float = math.inf


@dataclasses.dataclass
class Request:
    seq: int
    member: Member
    priority: int
    urgency: float
    steps: int
    due: float
    place: int  #: in line
    since: int
    patient: float  #: then its client starves


class Scheduler:
    def __init__(self, strategy, tiers, fairness, run):
        self.strategy, self.tiers = strategy, tiers
        self.fairness, self.run = fairness, run
        self.members, self.waiting = [], []
        self.places = self.starts = 0
        self.credit = 0.0
        self.turns = {}  # when a model's was last started
        self.rounds = {}  # by place, when it became its client's oldest

    def join(self, member):
        self.starts += 1
        member.turn = self.starts
        self.members.append(member)

    @property
    def scores(self):
        return self.strategy.endswith("_deadline") or self.strategy == "deadline_aware"

    def arrive(self, now, number, seq, priority, urgency, steps, due, expected):
        member = self.members[number]
        member.expected = expected
        priority = max(priority, member.highest_priority)
        urgency = min(urgency, member.max_urgency)
        self.places += 1
        mine = [each for each in self.waiting if each.member is member]
        older = mine[0] if mine and not member.queued else None
        patient = due - self.run if due < math.inf else now + member.budget
        made = Request(
            seq, member, priority, urgency, steps, due, self.places, now, patient
        )
        if older:
            made.place, made.since = older.place, older.since
            made.patient = older.patient
            self.waiting.remove(older)
        self.waiting.append(made)
        self.take_turn(member)

    def oldest(self, member):
        mine = [each for each in self.waiting if each.member is member]
        return min(mine, key=lambda each: each.place, default=None)

    def points(self, request, now):
        claims = 25 * request.urgency + (10 - min(request.priority, 10))
        oldest = self.oldest(request.member) is request
        expected = request.member.expected if oldest else math.inf
        if request.due == math.inf:
            steps = STEPS.get(request.steps, 0.0)
            cadence = 45 * max(0, now - expected) / (100 * MS)
            age = 15 * min((now - request.since) / request.member.budget, 1)
            return claims + steps + cadence + age
        slack = request.due - now - self.run
        back = 60 * (1 - request.urgency)
        if slack < 0:
            return claims + 15 - back
        asks_again = not request.member.queued and expected <= request.due
        return claims + 15 - 15 * slack / HURRY - (back if asks_again else 0)

    def tier(self, request):
        if self.strategy not in ("tiered_deadline", "priority_tiered"):
            return 0
        return min(request.priority, self.tiers - 1)

    def starving(self, among, now):
        """The oldest of who starves and was served longest ago."""
        oldest = [each for each in among if self.oldest(each.member) is each]
        found = [each for each in oldest if each.patient < now]
        return min(found, key=lambda each: each.member.turn, default=None)

    def best(self, among, now):
        """All that may be first: more than one where points are equal."""

        def most(of):
            top = max(self.points(each, now) for each in of)
            return [each for each in of if self.points(each, now) > top - EQUAL]

        stand = {}
        for each in among:
            stand.setdefault(each.member.model, []).append(each)
        if self.strategy == "model_deadline":
            in_turn = [
                model
                for model, of in stand.items()
                if all(each.due == math.inf for each in of)
            ]
            if in_turn:
                now_on = min(self.turns.get(model, 0) for model in in_turn)
                for model in in_turn:
                    if self.turns.get(model, 0) > now_on:
                        del stand[model]
        equal = most([each for of in stand.values() for each in of])
        return sorted(equal, key=lambda each: each.place)

    def next(self, now):
        """The seqs that may start now, the document's choice first."""
        if not self.waiting:
            return []
        first = min(self.tier(each) for each in self.waiting)
        among = [each for each in self.waiting if self.tier(each) == first]
        in_line = sorted(among, key=lambda each: each.place)
        if not self.scores:
            if self.strategy == "round_robin":
                oldest = [self.oldest(each.member) for each in in_line]
                in_line = sorted(oldest, key=lambda each: self.rounds[each.place])
            return in_line[:1]
        self.credit = min(1.0, self.credit + self.fairness)
        starving = self.starving(among, now) if self.credit >= 1 else None
        if starving:
            self.credit -= 1
            return [starving]
        return self.best(among, now)

    def start(self, request):
        self.waiting.remove(request)
        self.starts += 1
        request.member.turn = self.starts
        self.turns[request.member.model] = self.starts
        self.take_turn(request.member)

    def take_turn(self, member):
        oldest = self.oldest(member)
        if oldest:
            self.rounds.setdefault(oldest.place, len(self.rounds))
