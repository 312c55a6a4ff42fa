import { expect, test, vi } from 'vitest';
import { fetchExact, type ApiError } from '@/api/client';
import { numberOf, parseJson, stringifyJson } from '@/api/json';

/** Integers around the bounds of exact doubles and of the API. */
const INTEGERS = [
  '9007199254740991',
  '9007199254740992',
  '9007199254740993',
  '-9007199254740993',
  '9223372036854775807',
  '-9223372036854775808',
  '18446744073709551615',
];

test.each(INTEGERS)('the integer %s survives reading and writing', literal => {
  for (const text of [literal, `[${literal}]`, `{"id":${literal}}`, `{"a":[{"b":${literal}},1]}`]) {
    expect(stringifyJson(parseJson(text))).toBe(text);
  }
});

/** Texts that the exact reader and `JSON.parse` must read alike; the first item forces the exact reader. */
const TEXTS = [
  '{}',
  '[]',
  '[[],{},""]',
  ' {\t"a" :\n[ 1 , -2.5e-3 , true , false , null ] , "b" : "\\"\\\\" }\r\n',
  '"\\\\\\""',
  '"[{\\"n\\": 1}]"',
  '"\\u0000\\ud83d\\ude00 é"',
  '1.0',
  '-0.5',
  '1e400',
  '{"a":1,"a":2}',
  '{"toString":1,"constructor":{"prototype":3}}',
];

test.each(TEXTS)('%j is read as JSON.parse reads it', text => {
  const found = parseJson(`["0123456789012345",${text}]`) as unknown[];
  expect(found[1]).toEqual(JSON.parse(text));
});

test('random values are read and written as JSON.parse and JSON.stringify do', () => {
  let seed = 20261123;
  const random = (below: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * below);
  };
  const value = (depth: number): unknown => {
    switch (random(depth > 4 ? 4 : 6)) {
      case 0:
        return random(1e6) - 5e5;
      case 1:
        return random(1e6) / 977;
      case 2:
        return [null, true, false][random(3)];
      case 3:
        return String.fromCodePoint(
          ...Array.from({ length: random(6) }, () => [34, 92, 10, 0x202e, 0x1f600][random(5)]!),
        );
      case 4:
        return Array.from({ length: random(4) }, () => value(depth + 1));
      default:
        return Object.fromEntries(Array.from({ length: random(4) }, (_, at) => [`k${at}"\\`, value(depth + 1)]));
    }
  };
  for (let round = 0; round < 500; round += 1) {
    const expected = value(0);
    for (const indent of [0, 2]) {
      const text = JSON.stringify(expected, null, indent);
      expect(parseJson(`["0123456789012345",${text}]`)).toEqual(['0123456789012345', expected]);
      // The `bigint` forces the exact writer.
      expect(stringifyJson([1n, expected], indent)).toBe(JSON.stringify([1, expected], null, indent));
    }
  }
});

test('a member with the name __proto__ is kept', () => {
  const found = parseJson('{"__proto__":{"amount":9007199254740993}}');
  expect(Object.getPrototypeOf(found)).toBe(Object.prototype);
  expect(stringifyJson(found)).toBe('{"__proto__":{"amount":9007199254740993}}');
});

test('members without a value are left out, and items without one are null', () => {
  expect(stringifyJson({ a: undefined, b: [undefined, 2n], c: () => 1 })).toBe('{"b":[null,2]}');
  expect(stringifyJson(undefined)).toBe('null');
});

test.each(['', '{', '9007199254740993x', '[9007199254740993,]', '09007199254740993'])('%j is refused', text => {
  expect(() => parseJson(text)).toThrow(SyntaxError);
});

test('a number with a fraction or an exponent stays a double', () => {
  expect([numberOf('9007199254740993.0'), numberOf('1e20'), numberOf('-0')]).toEqual([9007199254740992, 1e20, -0]);
});

test('integers of a response and of an error are exact', async () => {
  const json = { 'content-type': 'application/json', etag: '"7-1f"' };
  const answers = [
    new Response('{"id":9007199254740993}', { headers: json }),
    new Response('{"error":"no","code":"X","details":{"n":9007199254740993}}', { status: 400, headers: json }),
  ];
  vi.stubGlobal('fetch', () => Promise.resolve(answers.shift()));
  const request = new Request('http://localhost/api/me');
  const response = await fetchExact(request);
  expect(await response.json()).toEqual({ id: 9007199254740993n });
  expect(response.headers.get('etag')).toBe('"7-1f"');
  const failure = (await fetchExact(request).catch((error: unknown) => error)) as ApiError;
  expect([failure.status, failure.code, failure.details]).toEqual([400, 'X', { n: 9007199254740993n }]);
});
