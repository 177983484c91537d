// Numbers in units that people read: as in the terminal (agent/common/src/units.rs).

/** Seconds with three significant digits: `869 µs`, `1.62 ms`, `24.1 s`, `2 min 5 s`. */
export function time(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds === 0) return "0";
  const size = Math.abs(seconds);
  if (size < 999.5e-9) return `${threeDigits(seconds * 1e9)} ns`;
  if (size < 999.5e-6) return `${threeDigits(seconds * 1e6)} µs`;
  if (size < 999.5e-3) return `${threeDigits(seconds * 1e3)} ms`;
  if (size < 119.5) return `${threeDigits(seconds)} s`;
  return longTime(seconds);
}

function longTime(seconds) {
  const hours = Math.floor(seconds / 3600);
  if (hours >= 2) return `${hours} h ${Math.floor((seconds - hours * 3600) / 60)} min`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  return `${minutes} min ${whole - minutes * 60} s`;
}

function threeDigits(value) {
  const size = Math.abs(value);
  return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/** A count with separators: `1,234,567`. */
export function count(number) {
  return Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A number and its noun: `1 record`, `3 records`. */
export function counted(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** A share of 1 in percent: `83.1%`, `<0.1%`. */
export function percent(share) {
  if (share === null || !Number.isFinite(share)) return "–";
  if (share > 0 && share < 0.0005) return "<0.1%";
  return `${(share * 100).toFixed(1)}%`;
}

/** Bytes in binary units: `21.3 MiB`. */
export function bytes(number) {
  let value = number;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (value < 1024) return `${value.toFixed(unit === "B" ? 0 : 1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} GiB`;
}

/** Things a second: `400/s`, `0.25/s`. */
export function rate(perSecond) {
  if (!Number.isFinite(perSecond)) return "–";
  if (perSecond === 0) return "0/s";
  if (perSecond < 10) return `${perSecond.toFixed(2)}/s`;
  return `${perSecond < 100 ? perSecond.toFixed(1) : count(perSecond)}/s`;
}

/** Bytes a second. */
export const byteRate = (perSecond) => `${bytes(perSecond)}/s`;

/** CPU seconds a second, as that many CPUs: `0.83 CPUs`, `<0.001 CPUs`. */
export function cores(number) {
  if (number === 0) return "0";
  if (number < 0.0005) return "<0.001";
  return number < 0.1 ? number.toFixed(3) : threeDigits(number);
}

/** A name of metrics in words: `tcp_open` is `tcp open`. */
export const words = (name) => name.replaceAll("_", " ");
