// Times as somebody wants to read them: in UTC, in the zone of the browser or in another one, as a date or by how long ago they were.
import { choice, chosen, element } from "./base.js";

let zone = "UTC";
let clock = "both";
let skew = 0; // how far the clock of this browser is behind that of the app, in ms

// as is a time in a zone.
export const as = (at, zone) => {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone, hourCycle: "h23", timeZoneName: "short",
    year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  }).formatToParts(at);
  const part = (type) => parts.find((p) => p.type === type)?.value ?? "";
  return `${part("year").padStart(4, "0")}-${part("month")}-${part("day")} ${part("hour")}:${part("minute")}:${part("second")} ${part("timeZoneName")}`;
};

// ago is how long ago something was, in its largest unit, as the server writes it.
export const ago = (ms) => {
  const length = Math.abs(ms);
  let text = `${Math.floor(length)} ms`;
  for (const [name, size] of [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1000]]) {
    const n = Math.floor(length / size);
    if (n >= 1) {
      text = `${n} ${name}${n > 1 ? "s" : ""}`;
      break;
    }
  }
  return ms < 0 ? `in ${text}` : `${text} ago`;
};

export const showTimes = (root) => {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) {
      continue; // it stays as the server has written it
    }
    const date = as(at, zone);
    const since = ago(Date.now() + skew - at.getTime());
    const beside = time.nextElementSibling?.classList.contains("ago") ? time.nextElementSibling : null;
    const relative = clock === "ago" && beside;
    time.textContent = relative ? since : date;
    time.title = relative ? date : zone === "UTC" ? since : `${as(at, "UTC")}, ${since}`;
    if (beside) {
      beside.textContent = since;
      beside.hidden = clock !== "both";
    }
  }
};

const own = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const known = (name) => {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
};

export const startTimes = () => {
  const now = document.getElementById("now");
  skew = new Date(now.dateTime).getTime() - Date.now();
  const select = document.getElementById("zone");
  const offer = (name, label = name) => {
    if (![...select.options].some((option) => option.value === name)) {
      select.append(element("option", { value: name }, label));
    }
  };
  offer(own(), `${own()}, of this browser`);
  offer(chosen("zone", known, "UTC"));
  select.addEventListener("focus", () => Intl.supportedValuesOf("timeZone").forEach((name) => offer(name)), { once: true });
  choice("clock", "both", (value) => { clock = value; });
  choice("zone", "UTC", (value) => {
    zone = value;
    document.getElementById("zone-name").textContent = value;
    showTimes(document);
  });
  document.getElementById("clock").addEventListener("change", () => showTimes(document));
  setInterval(() => document.hidden || showTimes(document), 30_000);
};
