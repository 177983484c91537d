// The order of services, and the groups that they are in.

import assert from "node:assert/strict";
import test from "node:test";

import { first, groups } from "./services.js";

const service = (service_name, more) => ({
  service_name,
  ports: [],
  tls_roles: [],
  cpu_cores: 0,
  tls_ratio: null,
  roles: [],
  findings: 0,
  ...more,
});
const names = (all) => all.map((one) => one.service_name);

const compiler = service("compiler", { cpu_cores: 4, tls_ratio: 0 });
const load = service("load generator", { cpu_cores: 1, tls_ratio: 0.9, tls_roles: ["client"] });
const busy = service("busy", { ports: [443], cpu_cores: 2, tls_ratio: 0.05, tls_roles: ["server"] });
const costly = service("costly", { ports: [8443], cpu_cores: 0.5, tls_ratio: 0.8, tls_roles: ["server"] });
const proxy = service("proxy", { ports: [80], cpu_cores: 0.1, tls_ratio: 0.1, tls_roles: ["server", "client"] });

test("services are listed by the CPU time that TLS takes", () => {
  const found = groups([compiler, busy, load, proxy, costly]);
  assert.deepEqual(names(found.servers), ["costly", "busy", "proxy"]);
  assert.deepEqual(names(found.clients), ["load generator"]);
  assert.deepEqual(names(found.others), ["compiler"]);
});

test("without samples, handshakes are what is known of TLS", () => {
  const role = (handshake_cores) => [{ role: "server", handshake_cores }];
  const more = { ports: [443], tls_roles: ["server"] };
  const little = service("little", { ...more, cpu_cores: 3, roles: role(0.1) });
  const much = service("much", { ...more, cpu_cores: 1, roles: role(0.4) });
  assert.deepEqual(names(groups([little, much]).servers), ["much", "little"]);
});

test("a server that is idle now stays among those with TLS", () => {
  const idle = service("idle", { ports: [443], tls_roles: ["server"] });
  assert.deepEqual(names(groups([compiler, idle]).servers), ["idle"]);
});

test("the first that is shown is a server with TLS, then a client", () => {
  assert.equal(first([compiler, load, busy]), "busy");
  assert.equal(first([compiler, load]), "load generator");
  assert.equal(first([compiler]), "compiler");
  assert.equal(first([]), null);
});
