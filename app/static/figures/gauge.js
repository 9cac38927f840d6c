// kv_cache_usage_perc as a gauge: what the step gained is its last piece, the watermark a mark on it.

import { bare } from "./plot.js";
import { theme } from "./theme.js";

export function gaugeFigure(model, width, height) {
  const t = theme();
  const { now, watermark_at: watermark } = model.usage;
  const was = model.usage.was ?? now;
  const low = Math.min(now, was);
  const gauge = {
    shape: "angular", bgcolor: "rgba(0,0,0,0)", borderwidth: 0,
    axis: { range: [0, 1], tickvals: [0, 0.5, 1], ticks: "", tickfont: { size: 11, color: t.ink3, family: t.sans } },
    bar: { color: "rgba(0,0,0,0)", thickness: 0, line: { width: 0 } },
    steps: [
      { range: [0, 1], color: t.line, thickness: 0.9 },
      { range: [0, low], color: t.ink2, thickness: 0.9 },
      { range: [low, now > was ? now : low], color: t.accent, thickness: 0.9 },
    ],
  };
  if (watermark !== null && watermark !== undefined) {
    gauge.threshold = { value: watermark, thickness: 1, line: { color: t.ink, width: 1.5 } };
  }
  return {
    traces: [{
      type: "indicator", mode: "gauge+number", name: "usage", value: now, domain: { x: [0, 1], y: [0, 1] }, gauge,
      number: { valueformat: ".2f", font: { family: t.mono, size: 25, color: t.ink, weight: 600 } },
    }],
    layout: { width, height, ...bare(), margin: { l: 12, r: 12, t: 18, b: 6, pad: 0 } },
  };
}
