"""Is what bounds a function named, and does its first action do what was promised?

Bottlenecks are planted into models of a platform in virtual time; the product's own diagnosis reads what the platform
would have counted, its first action is made, and the model runs again with another seed. Parts:

    a   planted one by one: named first, and its promises kept after the first action
    b   made at random, with no, one or several causes: of those in trouble, how many are named, and how many lose half
        of it by the first action
    c   healthy loads between a fifth and seven tenths of the capacity: nothing may be named
    d   a counter told wrong by a third: the law that it breaks has to be said

Seeds from `--seed` on are drawn anew; those below 1,000 were looked at while the rules were made.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks import report
from benchmarks.bottlenecks.engine_model import EnginePlant, cured_engine, window_of_engine
from benchmarks.bottlenecks.model_facts import window_of_model
from benchmarks.bottlenecks.planted_cases import HEALTHY, SEED_CASES, SPOILT, PlantedCase
from benchmarks.bottlenecks.plants import Plant, cured
from benchmarks.bottlenecks.platform_model import PlatformModel
from benchmarks.bottlenecks.random_plants import healthy_plant, random_plant
from benchmarks.bottlenecks.real_plants import diagnosed_really
from pilotlight_gateway.diagnosis.bottlenecks import Diagnosis, diagnose
from pilotlight_gateway.diagnosis.call_samples import tail_ms
from pilotlight_gateway.diagnosis.diagnosis_window import DiagnosisWindow
from pilotlight_gateway.diagnosis.measured_metrics import measured_metrics

SPOILT_BY = 1.3


@dataclass
class Score:
    """What was found so far."""

    cases: int = 0
    named: int = 0
    promises: int = 0
    kept: int = 0
    wrong: list[str] = field(default_factory=list)
    spent_s: float = 0.0


def watched(plant: Plant | EnginePlant, seed: int, asked: dict[str, float] | None = None) -> DiagnosisWindow:
    """The window of a run."""
    if isinstance(plant, EnginePlant):
        return window_of_engine(plant, seed)
    return window_of_model(PlatformModel(plant, seed).run(), **(asked or {}))


def told_wrong(window: DiagnosisWindow, counter: str) -> DiagnosisWindow:
    """The window with one counter a third too high."""
    value: Any = getattr(window, counter)
    return replace(window, **{counter: type(value)(value * SPOILT_BY)})


def planted(case: PlantedCase, seed: int, score: Score) -> None:
    """Plant a case, and take its first action."""
    window = watched(case.plant, seed, dict(case.asked))
    if case.spoilt:
        window = told_wrong(window, case.spoilt)
    begun = time.perf_counter()
    found = diagnose(window, case.tenant)
    score.spent_s += time.perf_counter() - begun
    score.cases += 1
    if found.name != case.name:
        score.wrong.append(f"{case.name} (seed {seed}) was {found.name}: {found.says} {found.evidence}")
        return
    score.named += 1
    if found.cures and found.promises:
        _check_promises(case, seed, found, score)


def _check_promises(case: PlantedCase, seed: int, found: Diagnosis, score: Score) -> None:
    changes = found.cures[0].changes
    plant = case.plant
    after = watched(
        cured_engine(plant, changes) if isinstance(plant, EnginePlant) else cured(plant, changes),
        seed + 100,
        dict(case.asked),
    )
    metrics, broken = measured_metrics(after, case.tenant), []
    for promise in found.promises:
        now = metrics[promise.metric]
        score.promises += 1
        if promise.is_kept(now):
            score.kept += 1
        else:
            broken.append(f"{promise.metric}: {now:.4g}, promised {promise.value:.4g} (+-{promise.tolerance:.0%})")
    if broken:
        score.wrong.append(f"{case.name} (seed {seed}) broke {'; '.join(broken)} after {found.cures[0].what}")


@dataclass
class MixScore:
    """Of plants made at random."""

    healthy: int = 0
    alarms: int = 0
    troubled: int = 0
    named: int = 0
    helped: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def _trouble(window: DiagnosisWindow, level_ms: float) -> tuple[float, float]:
    mine = [each for each in window.samples if each.tenant == "a"]
    return max(0.0, tail_ms(mine) - level_ms), window.refused / max(1, window.arrivals)


def mixed(plants: int, seed: int) -> MixScore:
    """Diagnose plants made at random, and take the first action of each that is named."""
    chance, score = random.Random(seed), MixScore()
    for place in range(plants):
        plant = random_plant(chance)
        window = watched(plant, seed * 1_000 + place)
        level = plant.level_s * 1000
        late, refused = _trouble(window, level)
        found = diagnose(window, "a")
        if not late and refused <= 0.001:
            score.healthy += 1
            score.alarms += found.is_bottleneck
            continue
        score.troubled += 1
        if not found.is_bottleneck:
            score.wrong.append(f"#{place} not named: {found.says} {found.evidence}")
            continue
        score.named += 1
        score.causes[found.name] += 1
        then, left = _trouble(watched(cured(plant, found.cures[0].changes), seed * 1_000 + place + 500_000), level)
        limited = found.name in ("quota", "budget")
        if left <= max(0.001, 0.5 * refused) if limited else then <= 0.5 * late:
            score.helped += 1
        else:
            score.wrong.append(
                f"#{place} {found.name}: late {late:.0f} -> {then:.0f} ms, refused {refused:.2f} -> {left:.2f}; "
                f"{found.says} first {found.cures[0].what}"
            )
    return score


def on_real_processes(seed: int) -> None:
    """Each plant that a machine like this one can carry; commands of first actions are run."""
    rows, right, kept, broken, false = [], 0, 0, 0, 0
    for each in diagnosed_really(seed=seed):
        name = each.found.get("name", each.found.get("code", ""))
        rows.append((each.plant.name, name, "; ".join(each.kept), "; ".join(each.broken)))
        print("-", each.plant.name, "was", name + ":", each.found.get("sentence", each.found), flush=True)
        is_healthy = each.plant.name == "nothing"
        false += is_healthy and not each.is_right
        right += each.is_right and not is_healthy
        kept, broken = kept + len(each.kept), broken + len(each.broken)
    report.table("Bottlenecks on real processes", ("planted", "named", "kept", "broken"), rows)
    figures = {"named": right / max(1, len(rows) - 1), "promises_kept": kept / max(1, kept + broken)}
    report.finish("diagnose", figures | {"false_alarms": float(false), "real": 1.0})


def main() -> None:
    parser = report.arguments("diagnose", __doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=3, help="of each planted case")
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--plants", type=int, default=100, help="made at random")
    parser.add_argument("--real", action="store_true", help="on a platform of real processes, in place of the models")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    options = report.parsed(parser)
    if options.real:
        on_real_processes(options.seed)
        return
    seeds = range(options.seed, options.seed + (1 if options.quick else options.seeds))
    plants = 12 if options.quick else options.plants

    alone, spoilt = Score(), Score()
    worst = 1.0
    for seed in seeds:
        before = alone.named, alone.cases
        for case in SEED_CASES:
            planted(case, seed, alone)
        worst = min(worst, (alone.named - before[0]) / (alone.cases - before[1]))
        for case in SPOILT:
            planted(case, seed, spoilt)
    quiet, alarms = 0, []
    chance = random.Random(options.seed)
    loads = [case.plant for case in HEALTHY] + [healthy_plant(chance) for _ in range(4 if options.quick else 20)]
    for place, plant in enumerate(loads):
        found = diagnose(watched(plant, options.seed * 77 + place))
        quiet += 1
        if found.name != "nothing":
            alarms.append(f"healthy #{place} was {found.name}: {found.says}")
    mix = mixed(plants, options.seed)
    if options.show:
        for line in (*alone.wrong, *spoilt.wrong, *alarms, *mix.wrong):
            print("-", line)
    report.table(
        "Bottlenecks that were planted",
        ("part", "cases", "right", "of their promises", "kept"),
        (
            ("a: one by one", alone.cases, alone.named, alone.promises, alone.kept),
            ("b: at random, in trouble", mix.troubled, mix.named, mix.named, mix.helped),
            ("c: healthy", quiet + mix.healthy, quiet + mix.healthy - len(alarms) - mix.alarms, "", ""),
            ("d: a counter told wrong", spoilt.cases, spoilt.named, "", ""),
        ),
    )
    print("b named:", ", ".join(f"{name} {count}" for name, count in mix.causes.most_common()))
    report.finish(
        "diagnose",
        {
            "named": alone.named / alone.cases,
            "named_worst_seed": worst,
            "promises_kept": alone.kept / max(1, alone.promises),
            "named_mixed": mix.named / max(1, mix.troubled),
            "halved_mixed": mix.helped / max(1, mix.named),
            "false_alarms": float(len(alarms) + mix.alarms),
            "laws_named": spoilt.named / spoilt.cases,
            "diagnosis_ms": alone.spent_s / alone.cases * 1000,
        },
    )


if __name__ == "__main__":
    main()
