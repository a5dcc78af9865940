// One question of a view: asked at once where it is another one, and again after a while where it is the same.

import { SourceError } from "./source.js";

export const ASK_OFTEN_MS = 2000;
export const ASK_SELDOM_MS = 5000;

// What failed may go well a little later.
const RETRY_MS = 5000;

export class Asking {
  // `onAnswer(answer, key)` and `onFailure(message, status)` draw; an answer that came too late is dropped.
  constructor(onAnswer, onFailure) {
    this.onAnswer = onAnswer;
    this.onFailure = onFailure;
    this.key = null;
    this.isBusy = false;
    this.answeredAt = 0;
  }

  // `make(signal)` asks. The same key is asked again `everyMs` after its last answer; 0 is never.
  ask(app, key, make, everyMs) {
    const isSame = key === this.key;
    const pause = this.hasFailed ? Math.max(everyMs, RETRY_MS) : everyMs;
    const isDue = pause > 0 && performance.now() - this.answeredAt > pause;
    if (isSame && (this.isBusy || !isDue || app.isPaused || app.source.isFile || !app.isLive)) return;
    this.stop();
    this.key = key;
    this.isBusy = true;
    const stopper = new AbortController();
    this.stopper = stopper;
    this.run(app, key, make, stopper.signal);
  }

  async run(app, key, make, signal) {
    try {
      const answer = await make(signal);
      this.hasFailed = false;
      if (!signal.aborted) this.onAnswer(answer, key);
    } catch (error) {
      if (signal.aborted) return;
      this.hasFailed = true;
      if (!(error instanceof SourceError)) console.error(error);
      if (error.status === 401) app.onRefused(error.message);
      // Nobody answered: what was shown stays, and the status line says so.
      if (error.status !== 0 || !this.answeredAt) this.onFailure(error.message, error.status);
    } finally {
      if (!signal.aborted) {
        this.isBusy = false;
        this.answeredAt = performance.now();
      }
    }
  }

  stop() {
    this.stopper?.abort();
    this.key = null;
    this.isBusy = false;
  }
}

// What a view says of a refusal. A server that does not know the path is an older one.
export function failureText(message, status, what) {
  if (status === 404 && /^there is no \/v1\//.test(message)) return `This daemon does not offer ${what}: it is an older one.`;
  return `${what[0].toUpperCase()}${what.slice(1)}: ${message}.`;
}
