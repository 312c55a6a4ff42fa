#!/usr/bin/env python3
"""Writes expected.txt: random cron expressions, zones and instants, with the next ticks of another implementation.

    pip install croniter==7.0.0 tzdata==2026.6
    python3 generate.py > expected.txt

croniter finds the local times, Python's zoneinfo converts them to UTC with the data of the package tzdata. The search
goes through local times, the tested one through periods of UTC. Each line has expression, zone, the minute since 1970
after which the ticks come, and the distances of the ticks in minutes, each to the one before, separated by `|`.

No range begins and ends with the same value: croniter reads `4-4` as the whole field, Vixie cron as 4.
"""
import random
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, reset_tzpath

from croniter import croniter

reset_tzpath(to=[])
CASES, TICKS, UTC = 10_000, 3, timezone.utc
ZONES = """UTC Europe/Berlin Europe/London Europe/Dublin Europe/Lisbon Europe/Moscow America/New_York America/Chicago
America/Los_Angeles America/St_Johns America/Sao_Paulo America/Santiago America/Havana America/Asuncion
America/Nuuk America/Caracas America/Phoenix America/Scoresbysund Asia/Tokyo Asia/Kolkata Asia/Kathmandu Asia/Tehran
Asia/Beirut Asia/Gaza Asia/Amman Asia/Pyongyang Asia/Shanghai Africa/Cairo Africa/Casablanca Africa/Lagos
Australia/Sydney Australia/Lord_Howe Australia/Adelaide Pacific/Auckland Pacific/Chatham Pacific/Apia Pacific/Kiritimati
Antarctica/Troll Atlantic/Azores""".split()
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()


def instant(minute):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)


def minute_of(at):
    return int(at.timestamp() // 60)


def changes(zone):
    """The minutes at which the offset changes."""
    found, step = [], 14 * 24 * 60
    for start in range(minute_of(datetime(1975, 1, 1, tzinfo=UTC)), minute_of(datetime(2037, 1, 1, tzinfo=UTC)), step):
        low, high = start, start + step
        offset = lambda minute: instant(minute).astimezone(zone).utcoffset()
        if offset(low) == offset(high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
        found.append(high)
    return found


def field(rng, low, high, names=()):
    value = lambda: rng.randint(low, high)
    name = lambda number: rng.choice([str(number), names[number - low]]) if names and number - low < len(names) else str(number)

    def element():
        kind = rng.random()
        if kind < 0.5:
            return name(value())
        first, last = sorted(rng.sample(range(low, high + 1), 2))
        span = f"{name(first)}-{name(last)}"
        return span if kind < 0.75 else f"{span}/{rng.randint(1, max(1, last - first))}"

    kind = rng.random()
    if kind < 0.35:
        return "*"
    if kind < 0.45:
        return f"*/{rng.randint(1, high - low + 1)}"
    return ",".join(element() for _ in range(rng.choice([1, 1, 1, 2, 3])))


def expression(rng):
    minute = rng.choice([field(rng, 0, 59), "0", "30", "*/15"])
    hour = rng.choice([field(rng, 0, 23), field(rng, 0, 4), "*"])
    day, month, weekday = field(rng, 1, 31), field(rng, 1, 12, MONTHS), field(rng, 0, 6, DAYS)
    day, month, weekday = ("*" if rng.random() < 0.4 else one for one in (day, month, weekday))
    return f"{minute} {hour} {day} {month} {weekday}"


def end_of_gap(local, zone):
    low, high = sorted(minute_of(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    low, high = low - 24 * 60, high + 24 * 60
    offset = lambda minute: instant(minute).astimezone(zone).utcoffset()
    # The gap is the change that skips this local time.
    for minute in range(low, high):
        if offset(minute) != offset(minute - 1):
            before = instant(minute).replace(tzinfo=None) + offset(minute - 1)
            after = instant(minute).replace(tzinfo=None) + offset(minute)
            if before <= local < after:
                return minute
    raise AssertionError(local, zone)


def ticks_of(local, zone, text):
    """The minutes since 1970 at which a local time has a tick."""
    minute, hour = text.split()[:2]
    both = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    exist = sorted({minute_of(at) for at in both if at.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local})
    if exist:
        return exist if hour.startswith("*") else exist[:1]
    return [] if minute.startswith("*") or hour.startswith("*") else [end_of_gap(local, zone)]


def expected(text, zone, start):
    around = timedelta(hours=26 if zone.key == "Pacific/Apia" else 3)
    local = instant(start).astimezone(zone).replace(tzinfo=None, second=0)
    times = croniter(text, local - around, implement_cron_bug=True)
    found, last = set(), None
    while True:
        local = times.get_next(datetime)
        if last and local > last + around:
            return sorted(found)[:TICKS]
        found |= {tick for tick in ticks_of(local, zone, text) if tick > start}
        if len(found) >= TICKS:
            third = sorted(found)[TICKS - 1]
            last = instant(third).astimezone(zone).replace(tzinfo=None)


def main():
    rng = random.Random(4711)
    zones = {name: (ZoneInfo(name), changes(ZoneInfo(name))) for name in ZONES}
    count = 0
    while count < CASES:
        text, name = expression(rng), rng.choice(ZONES)
        zone, near = zones[name]
        if near and rng.random() < 0.6:
            start = rng.choice(near) + rng.randint(-36 * 60, 6 * 60)
        else:
            start = rng.randint(minute_of(datetime(1975, 1, 1, tzinfo=UTC)), minute_of(datetime(2037, 1, 1, tzinfo=UTC)))
        try:
            ticks = expected(text, zone, start)
        except Exception as error:
            print(text, name, error, file=sys.stderr)
            continue
        distances = [after - before for before, after in zip([start] + ticks, ticks)]
        print(f"{text}|{name}|{start}|{' '.join(map(str, distances))}")
        count += 1


main()
