// What is shown, in the address and back.

import assert from "node:assert/strict";
import test from "node:test";

import { USUAL_WINDOW, address, parse } from "./address.js";

test("an address is read as it was written", () => {
  for (const name of ["nginx.service", "a&b=c", "c++ #1", "100%", "ß/é"]) {
    for (const window of [300, 900, 3600]) {
      assert.deepEqual(parse(address({ name, window })), { name, window });
    }
  }
  assert.deepEqual(parse(address({ name: null, window: 300 })), { name: null, window: 300 });
});

test("what an address does not say is as usual", () => {
  assert.equal(address({ name: "nginx", window: USUAL_WINDOW }), "#service=nginx");
  for (const fragment of ["", "#", "#window=1", "#window=x&service=%", "#other=1"]) {
    assert.deepEqual(parse(fragment), { name: null, window: USUAL_WINDOW });
  }
});
