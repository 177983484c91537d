// The history of one service, put together from what each poll brings. No DOM.

/** An hour of points of 5 s, as the agent keeps. */
export const POINTS = 720;

/** Nothing yet of that service. */
export const empty = (service) => ({ service, run: null, newest: 0, ends: [], lengths: [], columns: new Map() });

/**
 * The history with what came: points of the same run that follow what is held are added, anything
 * else replaces it, so that the history of two runs, or one with a hole, never mixes.
 */
export function merge(held, came) {
  const follows =
    held.service === came.service_name && held.run === came.run && came.first_point === held.newest + 1;
  const base = follows ? held : empty(came.service_name);
  const [before, added] = [base.ends.length, came.ends.length];
  const drop = Math.max(0, before + added - POINTS);
  const names = new Set([...base.columns.keys(), ...Object.keys(came.columns)]);
  const columns = new Map();
  for (const name of names) {
    const old = base.columns.get(name) ?? zeros(before);
    const values = [...old, ...(came.columns[name] ?? zeros(added))].slice(drop);
    columns.set(name, values);
  }
  return {
    service: came.service_name,
    run: came.run,
    newest: came.first_point + added - 1,
    ends: [...base.ends, ...came.ends].slice(drop),
    lengths: [...base.lengths, ...came.lengths].slice(drop),
    columns,
  };
}

const zeros = (length) => new Array(length).fill(0);

/** The points that ended in the last `seconds`. */
export function tail(held, seconds) {
  const last = held.ends.at(-1) ?? 0;
  const from = held.ends.findIndex((end) => end > last - seconds);
  const start = from < 0 ? held.ends.length : from;
  const columns = new Map([...held.columns].map(([name, values]) => [name, values.slice(start)]));
  return { ...held, ends: held.ends.slice(start), lengths: held.lengths.slice(start), columns };
}

/** A figure at each point: the sum of some columns. */
export function sum(held, names) {
  const kept = names.map((name) => held.columns.get(name)).filter(Boolean);
  return held.ends.map((_, at) => kept.reduce((all, values) => all + values[at], 0));
}

/** The same each second. */
export const perSecond = (held, names) => sum(held, names).map((value, at) => value / held.lengths[at]);

/** Some columns divided by others; null where these are zero. */
export function quotient(held, of, by) {
  const divisors = sum(held, by);
  return sum(held, of).map((value, at) => (divisors[at] > 0 ? value / divisors[at] : null));
}

/** All of a column in these points. */
export const total = (held, names) => sum(held, names).reduce((all, value) => all + value, 0);
