// One place from which views take what they draw with.
import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render };
export { useEffect, useRef, useState } from "./vendor/hooks.js";
export { computed, signal } from "./vendor/signals.js";

/** @type {(strings: TemplateStringsArray, ...values: unknown[]) => any} */
export const html = htm.bind(h);
