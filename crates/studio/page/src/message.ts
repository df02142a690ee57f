// The line under the header for what went wrong.
import { byId, setText } from "./element.ts";

let lasting: string | null = null;

function show(text: string | null): void {
  const place = byId("message");
  place.hidden = text === null;
  setText(place, text ?? "");
}

/** Shows an error, or, with null, takes the last one away. */
export function tell(error: unknown): void {
  show(error === null ? lasting : reason(error));
}

/** Shows a message that stays until it is taken away by null. */
export function tellLasting(text: string | null): void {
  lasting = text;
  show(text);
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
