// The clock of strangers' code: it stands still, and local time is UTC, whatever zone the host is in.
//
// It is made when the code first looks at it. By then the code may have changed every global function, and would get at
// the language's own `Date` through one that is called with it: what is called here is called as it was before.
(now, Native, pristine) => {
  "use strict";
  const { apply, construct, defineProperty, getOwnPropertyNames, exec, splitBy, slice } = pristine;
  const { parse: parseNative, UTC, prototype } = Native;
  const { getTime, toUTCString } = prototype;
  const define = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

  // ISO 8601 as ECMAScript has it. Everything else goes to the lenient parser, with a zone in front that any zone in
  // the text itself replaces.
  const ISO =
    /^(?:[+-]\d{6}|\d{4})(?:-(?:0[1-9]|1\d)(?:-(?:0[1-9]|[1-3]\d))?)?(T\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(Z|[+-]\d\d:?\d\d)?$/;
  const parse = (text) => {
    const found = apply(exec, ISO, [text]);
    if (!found) return parseNative("Z " + text);
    return parseNative(found[1] && !found[2] ? text + "Z" : text);
  };

  const primitive = (value) => {
    if (value === null || (typeof value !== "object" && typeof value !== "function")) return value;
    const exotic = value[Symbol.toPrimitive];
    const ways = exotic === undefined || exotic === null ? [value.valueOf, value.toString] : [exotic];
    for (const way of ways) {
      const result = typeof way === "function" ? apply(way, value, ["default"]) : value;
      if (result === null || (typeof result !== "object" && typeof result !== "function")) return result;
    }
    throw new TypeError("toPrimitive");
  };
  const time = (value) => {
    try {
      return apply(getTime, value, []);
    } catch {
      const plain = primitive(value);
      return typeof plain === "string" ? parse(plain) : plain;
    }
  };

  function Date(...parts) {
    if (!new.target) return new Native(now).toString();
    if (parts.length === 0) return construct(Native, [now], new.target);
    if (parts.length === 1) return construct(Native, [time(parts[0])], new.target);
    return construct(Native, [apply(UTC, Native, parts)], new.target);
  }
  defineProperty(Date, "length", { value: 7, configurable: true });
  defineProperty(Date, "prototype", { value: prototype, writable: false });
  define(Date, "now", () => now);
  define(Date, "parse", (text) => parse(`${text}`));
  define(Date, "UTC", UTC);
  define(prototype, "constructor", Date);

  for (const name of getOwnPropertyNames(prototype)) {
    const [verb, rest] = [apply(slice, name, [0, 3]), apply(slice, name, [3])];
    const twin = prototype[`${verb}UTC${rest}`];
    if (twin) define(prototype, name, twin);
  }
  // "Thu, 01 Jan 1970 00:00:00 GMT", or "Invalid Date".
  const words = (date) => apply(splitBy, /,? /, [apply(toUTCString, date, [])]);
  const text = (make) =>
    function () {
      const all = words(this);
      return all.length < 6 ? "Invalid Date" : make(all, this);
    };
  const day = ([weekday, date, month, year]) => `${weekday} ${month} ${date} ${year}`;
  const clock = (all) => `${all[4]} GMT+0000`;
  const two = (number) => (number < 10 ? "0" : "") + number;
  const localDay = ([, date, , year], self) => `${two(self.getUTCMonth() + 1)}/${date}/${year}`;
  const localClock = ([, , , , clock], self) => {
    const hour = self.getUTCHours();
    return `${two(((hour + 11) % 12) + 1)}${apply(slice, clock, [2])} ${hour < 12 ? "AM" : "PM"}`;
  };
  define(prototype, "toString", text((all) => `${day(all)} ${clock(all)}`));
  define(prototype, "toDateString", text(day));
  define(prototype, "toTimeString", text(clock));
  define(prototype, "toLocaleString", text((all, self) => `${localDay(all, self)}, ${localClock(all, self)}`));
  define(prototype, "toLocaleDateString", text(localDay));
  define(prototype, "toLocaleTimeString", text(localClock));
  define(prototype, "getTimezoneOffset", function () {
    return apply(getTime, this, []) * 0;
  });
  define(prototype, "getYear", function () {
    return this.getUTCFullYear() - 1900;
  });
  define(prototype, "setYear", function (year) {
    const number = Number(year);
    const whole = Math.trunc(number);
    return this.setUTCFullYear(whole >= 0 && whole <= 99 ? whole + 1900 : number);
  });
  return Date;
};
