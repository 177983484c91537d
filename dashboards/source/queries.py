"""PromQL in the words of docs/metrics.md: which series, over which window, compared with when."""

from dataclasses import dataclass, replace
from typing import Callable, Sequence

HOSTS = ('cluster=~"$cluster"', 'job=~"$job"', 'instance=~"$instance"')
"""Matchers that every query has; `cluster` matches also where no series has that label."""

SERVICES = (*HOSTS, 'service_name=~"$service_name"')

UNRECORDED = 'instance=~"$unrecorded"'
"""Hosts without recorded series, as where Prometheus has not loaded the rules."""


WHOLE = "[$__range] @ end()"
"""The whole selected time, also at each point of a line."""


@dataclass(frozen=True)
class Source:
    """Series that have these labels, over a window, which is at the end or elsewhere. With `recorded`, figures
    are those of the recording rules where there are such."""

    matchers: tuple[str, ...] = SERVICES
    window: str = "[$__rate_interval]"
    recorded: bool = False

    def over_all(self) -> "Source":
        """The same over the whole selected time, also at each point of a line."""
        return replace(self, window=WHOLE)

    def only(self, *matchers: str) -> "Source":
        """The same with further matchers on all that it selects."""
        return replace(self, matchers=(*self.matchers, *matchers))

    def value(self, name: str, *matchers: str) -> str:
        """An instant selector, as for gauges."""
        return f"{name}{{{', '.join([*self.matchers, *matchers])}}}"

    def average(self, name: str, *matchers: str) -> str:
        """A gauge, such as a recorded series: its value, or its mean over the whole selected time."""
        selected = self.value(name, *matchers)
        return f"avg_over_time({selected}{WHOLE})" if self.window == WHOLE else selected

    def rate(self, name: str, *matchers: str) -> str:
        """Per-second rate of a counter; of a native histogram's buckets by the same name."""
        return f"rate({self.value(name, *matchers)}{self.window})"

    def recorded_or(
        self, recorded: Callable[["Source"], str], raw: Callable[["Source"], str], *labels: str
    ) -> str:
        """The recorded series, and of hosts without such the raw ones, summed over the `labels` that the
        recorded ones do not have. What is recorded is not read again."""
        if not self.recorded:
            return raw(self)
        others = raw(self.only(UNRECORDED))
        if labels:
            others = f"sum without ({', '.join(labels)}) ({others})"
        return f"({recorded(self)} or {others})"

    def histogram_sum(self, name: str, *matchers: str) -> str:
        """Rate of a histogram's sum: of the native one, or of the classic one where that is all
        that was scraped. The choice is made series by series, so that a mixed fleet is not
        counted twice, nor half."""
        return f"(histogram_sum({self.rate(name, *matchers)}) or {self.rate(f'{name}_sum', *matchers)})"

    def histogram_count(self, name: str, *matchers: str) -> str:
        """Rate of a histogram's count, chosen like `histogram_sum`."""
        return f"(histogram_count({self.rate(name, *matchers)}) or {self.rate(f'{name}_count', *matchers)})"

    def quantile(self, quantile: float, name: str, *matchers: str, by: Sequence[str] = ()) -> str:
        """Quantile from native buckets, which are finer, or else from classic ones."""
        native = total(self.rate(name, *matchers), *by)
        classic = total(self.rate(f"{name}_bucket", *matchers), *by, "le")
        return f"histogram_quantile({quantile:g}, {native}) or histogram_quantile({quantile:g}, {classic})"

    def heat_map(self, name: str, *matchers: str) -> str:
        """Buckets over time. `on()`: only one of the two kinds, whichever labels they have."""
        native = total(self.rate(name, *matchers))
        classic = total(self.rate(f"{name}_bucket", *matchers), "le")
        return f"{native} or on() {classic}"


def total(expression: str, *by: str) -> str:
    """Sum, kept apart by the labels `by`."""
    return f"sum by ({', '.join(by)}) ({expression})" if by else f"sum({expression})"


def ratio(part: str, whole: str) -> str:
    """Quotient; no value where the whole is zero, instead of NaN."""
    return f"{part} / ({whole} > 0)"


def each_of(parts: str, whole: str, *by: str) -> str:
    """Each part over the one whole, which has no labels, or over the whole with the same labels `by`."""
    return f"{parts} / on ({', '.join(by)}) group_left () ({whole} > 0)"


def or_zero(expression: str, witness: str) -> str:
    """The expression, or zero where it has no series but the witness has: what never happened has
    no series, and a flat `or vector(0)` would show zero for a host that is down, too."""
    return f"{expression} or {witness} * 0"


def or_none(expression: str, witness: str, label: str) -> str:
    """The same for a list by a label that is empty as a whole: one zero, of the label `none`."""
    return f'{expression} or on () label_replace({witness} * 0, "{label}", "none", "", "")'


def labelled(expression: str, label: str, value: str, *by: str) -> str:
    """The value of a second expression as a label of the first, where both have the labels `by`: a table of
    one query shows its text for no data."""
    each = ", ".join(by)
    return f'{expression} * on ({each}) group_left ({label}) count_values by ({each}) ("{label}", {value})'


def reworded(expression: str, label: str, words: dict[str, str]) -> str:
    """Other words for values of a label."""
    for old, new in words.items():
        expression = f'label_replace({expression}, "{label}", "{new}", "{label}", "{old}")'
    return expression


def ranked(name: str, source: Source, label: str, ranks: dict[int, tuple[str, str]], *by: str) -> str:
    """A number for each value of a label, so that rows can be sorted by it; of series with the value 1."""
    each = (
        f"sum by ({', '.join(by)}) ({source.value(name, matcher)} == 1) * 0 + {rank}"
        for rank, matcher in ((rank, f'{label}="{word}"') for rank, (word, _) in ranks.items())
    )
    return " or ".join(each)
