"""What each fairness key of each tenant has consumed, over time."""

from matplotlib.axes import Axes

from hascheduler.simulate.outcome import Outcome
from hascheduler.simulate.plot_palette import INK, OTHERS, Palette
from hascheduler.simulate.plot_time import TimeScale

_LINES_MAX = 300


def draw_costs(axes: Axes, outcome: Outcome, palette: Palette, scale: TimeScale) -> None:
    """Those that consumed most, where there are very many."""
    dearest = sorted(outcome.costs, key=lambda key: outcome.accumulated_cost_ms[key], reverse=True)[:_LINES_MAX]
    for key in reversed(dearest):
        colour = palette.colours.get(key, OTHERS) if palette.tells_keys else INK
        changes = [*outcome.costs[key], (outcome.ended_at_ms, outcome.costs[key][-1][1])]
        points = [(scale.of(at_ms), cost_ms / 1_000) for at_ms, cost_ms in changes]
        known = colour != OTHERS
        axes.step(*zip(*points, strict=True), where="post", color=colour, linewidth=1.6 if known else 0.6, zorder=3)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("accumulated cost (s)")
