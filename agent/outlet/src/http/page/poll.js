// Asks the agent again and again, and outlives its restarts.

/** Between two answers, in ms: the agent has new points each 5 s. */
const PERIOD = 2500;
/** After a failure: soon, then less often. */
const RETRIES = [500, 1000, 2000, 4000];
const PATIENCE = 10_000;

/**
 * Calls `onAnswer` with each answer to `question()`, a query string, and `onFailure` with a reason
 * in words when there is none. Stops while nobody looks. Returns a function that asks at once.
 */
export function poll(question, onAnswer, onFailure) {
  let timer = null;
  let failures = 0;
  let turn = 0;

  const later = (delay) => {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(ask, delay);
  };

  async function ask() {
    const mine = ++turn;
    clearTimeout(timer);
    try {
      const answer = await fetchJson(`/api/v1/state?${question()}`);
      if (mine !== turn) return;
      failures = 0;
      onAnswer(answer);
      later(PERIOD);
    } catch (error) {
      if (mine !== turn) return;
      onFailure(reason(error));
      later(RETRIES[Math.min(failures++, RETRIES.length - 1)]);
    }
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : ask()));
  ask();
  return ask;
}

class Refused extends Error {}

async function fetchJson(url) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE), cache: "no-store" });
  if (!answer.ok) throw new Refused(String(answer.status));
  return answer.json();
}

function reason(error) {
  if (!(error instanceof Refused)) return "the agent does not answer, trying again";
  if (error.message === "401") return "the agent requires a password: reload the page";
  return `the agent answers with status ${error.message}, trying again`;
}
