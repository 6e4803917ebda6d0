// Pictures of numbers. Each says in words what it shows, for those who do not see it.
import { html, useEffect, useRef } from "../html.js";
import { clock, number } from "../format.js";

const WIDTH = 120;
const HEIGHT = 28;

/** A line without axes. @param {{values: number[], label: string, points?: number}} props */
export function Sparkline({ values, label, points = 120 }) {
  const shown = (values || []).slice(-points);
  const most = Math.max(1, ...shown);
  const step = WIDTH / Math.max(1, points - 1);
  const first = points - shown.length;
  const line = shown.map((value, place) => `${((first + place) * step).toFixed(1)},${(HEIGHT - 2 - (value / most) * (HEIGHT - 4)).toFixed(1)}`).join(" ");
  const last = shown.length ? shown[shown.length - 1] : 0;
  return html`<svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
    aria-label=${`${label}: ${number(last)} now, ${number(most)} at most`}><polyline points=${line} /></svg>`;
}

/**
 * Series over time with axes, drawn by uPlot.
 * @param {{times: number[], series: {label: string, values: (number | null)[], kind?: string, bars?: boolean}[], height?: number, label: string, zone?: string}} props
 *   `times` in seconds.
 */
export function Chart({ times, series, height = 180, label }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const data = [times, ...series.map((each) => each.values)];
  useEffect(() => {
    let gone = false;
    /** @type {ResizeObserver | undefined} */
    let observer;
    import("../vendor/uplot.js").then(({ default: UPlot }) => {
      if (gone || !box.current) return;
      const style = getComputedStyle(box.current);
      const ink = style.getPropertyValue("--dim");
      const axis = { stroke: ink, grid: { stroke: style.getPropertyValue("--line"), width: 1 }, ticks: { show: false } };
      plot.current = new UPlot(
        {
          width: box.current.clientWidth,
          height,
          legend: { show: series.length > 1 },
          cursor: { y: false },
          scales: { y: { range: (/** @type {any} */ _u, /** @type {number} */ _low, /** @type {number} */ high) => [0, Math.max(1, high)] } },
          axes: [{ ...axis, values: (/** @type {any} */ _u, /** @type {number[]} */ at) => at.map((each) => clock(each * 1_000)) }, { ...axis, size: 48 }],
          series: [
            {},
            ...series.map((each) => {
              const colour = style.getPropertyValue(`--${each.kind || "accent"}`);
              return {
                label: each.label,
                stroke: colour,
                width: 1.5,
                points: { show: false },
                ...(each.bars ? { fill: colour, paths: UPlot.paths.bars({ size: [0.8, 60] }) } : {}),
              };
            }),
          ],
        },
        data,
        box.current,
      );
      observer = new ResizeObserver(() => box.current && plot.current.setSize({ width: box.current.clientWidth, height }));
      observer.observe(box.current);
    });
    return () => {
      gone = true;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [series.length, height]);
  useEffect(() => plot.current?.setData(data));
  return html`<div class="chart" ref=${box} role="img" aria-label=${label}></div>`;
}

/** A part of a whole, as a bar with its numbers beside it. @param {{value: number, of: number, label: string, kind?: string}} props */
export function Bar({ value, of, label, kind = "accent" }) {
  const part = of > 0 ? Math.min(1, value / of) : 0;
  return html`<span class="bar" role="img" aria-label=${`${label}: ${number(value)} of ${number(of)}`} title=${`${number(value)} of ${number(of)}`}>
    <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="8" /><rect class=${kind} width=${100 * part} height="8" /></svg>
  </span>`;
}
