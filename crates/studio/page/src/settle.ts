// Sliders that answer when they are let go: at once after the pointer, and, as every key press counts as
// a change, a moment after the last key.

const QUIET = 350;

/** Calls `act` when the slider has been moved and let go. */
export function whenSettled(slider: HTMLInputElement, act: () => void): void {
  let byPointer = false;
  let waiting = 0;
  slider.addEventListener("pointerdown", () => { byPointer = true; });
  slider.addEventListener("keydown", () => { byPointer = false; });
  slider.addEventListener("change", () => {
    clearTimeout(waiting);
    if (byPointer) act();
    else waiting = window.setTimeout(act, QUIET);
  });
}
