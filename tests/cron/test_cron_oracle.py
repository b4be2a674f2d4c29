"""The next firing of ten thousand random (expression, zone, instant), compared with croniter.

croniter works on local times without a zone here, because it has no clear rule for changes of the clocks. This file
applies those changes with Python's own zoneinfo, by the rule in docs/activities.md. Where the two read an expression
differently, KNOWN says who is right; the test shows that each of these differs, and everything else must agree.
"""

import datetime
import os
import random
import subprocess
import zoneinfo

import croniter

SEED = int(os.environ.get("HAPAX_SEED", "20260301"))
CASES = 10_000
UTC = datetime.timezone.utc
ZONES = ["UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Asia/Kathmandu",
         "Asia/Tokyo", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Auckland", "Asia/Tehran"]
FIRST = int(datetime.datetime(2005, 1, 1, tzinfo=UTC).timestamp())
LAST = int(datetime.datetime(2036, 1, 1, tzinfo=UTC).timestamp())
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
WEEKDAYS = "sun mon tue wed thu fri sat".split()

def numbers(item, low, high):
    span, _, step = item.partition("/")
    if span == "*":
        span = f"{low}-{high}"
    elif "-" not in span:
        span = f"{span}-{high if step else span}"
    first, last = span.split("-")
    return set(range(int(first), int(last) + 1, int(step or 1)))


def restricts_both_days(fields):
    return fields[3] != "*" and fields[5] != "*"


def days(fields):
    return set().union(*(numbers(item, 1, 31) for item in fields[3].split(",") if item != "L"))


def lists_every_day(fields):
    return restricts_both_days(fields) and days(fields) == set(range(1, 32))


def leaps_over_the_first(fields):
    beyond = min((day for day in days(fields) if day > 28), default=0)
    return fields[3] != "*" and beyond >= 30 and not days(fields).isdisjoint(range(1, beyond - 28))


def is_plain_weekday(fields):
    return "L" not in fields[5] and "#" not in fields[5]


def weekdays(fields, last):
    text = fields[5]
    for number, name in enumerate(WEEKDAYS):
        text = text.replace(name, str(number))
    return set().union(*(numbers(item, 0, last) for item in text.split(",")))


def lists_every_weekday(fields):
    return restricts_both_days(fields) and is_plain_weekday(fields) and weekdays(fields, 6) == set(range(7))


def steps_to_seven(fields):
    return is_plain_weekday(fields) and fields[5] != "*" and 7 in weekdays(fields, 7)


def has_both_days_and_an_nth(fields):
    return restricts_both_days(fields) and not is_plain_weekday(fields)


# What the two read differently, an example, and who is right. docs/activities.md has this as a table.
KNOWN = [
    (has_both_days_and_an_nth, "0 0 0 27 * 5L",
     "Hapax: a day that matches either field counts; croniter then wants both, for L and # alone"),
    (lists_every_day, "0 0 0 1-31 * 1",
     "Hapax: 1-31 matches every day, and either field is enough; croniter takes it for *, so that only Mondays are left"),
    (leaps_over_the_first, "0 0 0 1,31 * *",
     "Hapax: after 23 February comes 1 March; croniter counts on to the 31st of February, 3 March, and goes on from there"),
    (lists_every_weekday, "0 0 0 13 * 0-6", "Hapax, for the same reason"),
    (steps_to_seven, "0 0 0 * * 1/1",
     "Hapax: a/n goes on to Saturday; croniter counts 7 as one more day, and has a full week of seven without Sunday"),
]


# ---- random cases

def item(rng, low, high, names=None):
    kind = rng.random()
    if kind < 0.35:
        value = rng.randint(low, high)
        return names[value - low] if names and rng.random() < 0.3 else str(value)
    if kind < 0.55:
        return f"*/{rng.randint(2, max(2, (high - low) // 2))}"
    first = rng.randint(low, high - 1)
    last = rng.randint(first + 1, high)
    if kind < 0.8:
        return f"{first}-{last}"
    if kind < 0.92:
        return f"{first}-{last}/{rng.randint(1, 5)}"
    return f"{first}/{rng.randint(1, 5)}"


def field(rng, low, high, stars, names=None):
    if rng.random() < stars:
        return "*"
    return ",".join(item(rng, low, high, names) for _ in range(rng.choice([1, 1, 1, 2, 3])))


def day_field(rng):
    if rng.random() < 0.1:
        return rng.choice(["L", "15,L"])
    return field(rng, 1, 31, 0.6)


def weekday_field(rng):
    if rng.random() < 0.15:
        day = rng.randint(0, 6)
        return rng.choice([f"{day}L", f"{day}#{rng.randint(1, 4)}"])
    return field(rng, 0, 6, 0.6, WEEKDAYS)


def fields_of(rng):
    second = "0" if rng.random() < 0.6 else field(rng, 0, 59, 0.2)
    return [second, field(rng, 0, 59, 0.3), field(rng, 0, 23, 0.4), day_field(rng), field(rng, 1, 12, 0.7, MONTHS),
            weekday_field(rng)]


def offset(zone, instant):
    return datetime.datetime.fromtimestamp(instant, zone).utcoffset()


def change_within(zone, first, last, step=6 * 3600):
    """The first instant in (first, last] with another offset, or None. May miss two changes within a step."""
    for instant in range(first, last, step):
        end = min(instant + step, last)
        if offset(zone, instant) == offset(zone, end):
            continue
        low, high = instant, end
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(zone, middle) == offset(zone, low) else (low, middle)
        return high
    return None


def instant_of(rng, zone):
    instant = rng.randint(FIRST, LAST)
    if rng.random() < 0.5:
        change = change_within(zone, instant, instant + 183 * 86400, step=5 * 86400)
        if change:
            return change + rng.choice([-1, 0, 1, rng.randint(-7200, 7200), rng.randint(-86400, 86400)])
    return instant


# ---- the expected result

def croniter_text(fields):
    """croniter has the second last, and the L before the day of the week."""
    weekday = f"L{fields[5][0]}" if fields[5].endswith("L") else fields[5]
    last = "l" if fields[3] == "L" else fields[3].replace("L", "l")
    return " ".join([fields[1], fields[2], last, fields[4], weekday, fields[0]])


def instant_at(zone, local):
    """The instant of a local time: the first if it comes twice, the end of the gap if it never comes."""
    instant = int(local.replace(tzinfo=zone, fold=0).timestamp())
    if datetime.datetime.fromtimestamp(instant, zone).replace(tzinfo=None) == local:
        return instant
    return change_within(zone, instant - 26 * 3600, instant)


def expected(fields, zone, after):
    local = datetime.datetime.fromtimestamp(after, zone).replace(tzinfo=None)
    change = change_within(zone, after - 26 * 3600, after + 1)
    if change:  # local times that have passed may occur again, or for the first time
        local -= abs(offset(zone, change) - offset(zone, change - 1)) + datetime.timedelta(seconds=1)
    firings = croniter.croniter(croniter_text(fields), local)
    while True:
        instant = instant_at(zone, firings.get_next(datetime.datetime))
        if instant > after:
            return instant


def hapax(cases):
    lines = "".join(f"{' '.join(fields)}\t{zone}\t{after}\n" for fields, zone, after in cases)
    out = subprocess.run([os.environ["CRON_NEXT"]], input=lines, capture_output=True, text=True, check=True, timeout=240)
    return out.stdout.splitlines()


def test_ten_thousand_random_firings_agree_with_croniter():
    rng = random.Random(SEED)
    cases = []
    while len(cases) < CASES:
        zone = rng.choice(ZONES)
        fields = fields_of(rng)
        if not any(differs(fields) for differs, _, _ in KNOWN):
            cases.append((fields, zone, instant_of(rng, zoneinfo.ZoneInfo(zone))))
    never = 0
    for (fields, zone, after), answer in zip(cases, hapax(cases), strict=True):
        what = f"seed {SEED}: {' '.join(fields)} in {zone} after {after}"
        try:
            right = str(expected(fields, zoneinfo.ZoneInfo(zone), after))
        except croniter.CroniterBadDateError:
            assert answer.startswith("never fires"), f"{what}: {answer}"
            never += 1
            continue
        assert answer == right, f"{what}: Hapax {answer}, croniter {right}"
    assert never < CASES / 10


def test_known_differences_do_differ():
    zone = zoneinfo.ZoneInfo("UTC")
    for differs, expression, why in KNOWN:
        fields = expression.split()
        assert differs(fields), expression
        firings = {}
        for after in range(FIRST, FIRST + 40 * 86400, 86400):
            firings[after] = (hapax([(fields, "UTC", after)])[0], str(expected(fields, zone, after)))
        assert any(ours != theirs for ours, theirs in firings.values()), f"{expression}: {why}"


def test_wrong_answer_would_be_found():
    cases = [(["0", "30", "2", "*", "*", "*"], "Europe/Berlin", int(datetime.datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()))]
    right = expected(cases[0][0], zoneinfo.ZoneInfo("Europe/Berlin"), cases[0][2])
    assert hapax(cases) == [str(right)]
    assert right == int(datetime.datetime(2026, 3, 29, 1, tzinfo=UTC).timestamp())  # the end of the gap
