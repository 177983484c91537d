// SPDX-License-Identifier: Apache-2.0 OR MIT
// HTTPS with a cluster of Node.js processes on one port, which get its connections in turn. With
// `shared` all have the same ticket keys, else each has its own.
"use strict";

const cluster = require("cluster");
const crypto = require("crypto");
const fs = require("fs");
const https = require("https");

const [certificate, privateKey, workers, keys] = process.argv.slice(2);

function serve() {
  const [cert, key] = [certificate, privateKey].map((path) => fs.readFileSync(path));
  const server = https.createServer({ cert, key, minVersion: "TLSv1.2" }, (_request, response) => {
    response.setHeader("Connection", "close");
    response.end("ok\n");
  });
  if (process.env.TICKET_KEYS) server.setTicketKeys(Buffer.from(process.env.TICKET_KEYS, "hex"));
  server.listen(0, "127.0.0.1");
}

if (cluster.isPrimary) {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  const env = keys === "shared" ? { TICKET_KEYS: crypto.randomBytes(48).toString("hex") } : {};
  let waiting = Number(workers);
  cluster.on("listening", (_worker, address) => {
    waiting -= 1;
    if (waiting === 0) console.log(`port ${address.port}`);
  });
  for (let started = 0; started < Number(workers); started += 1) cluster.fork(env);
} else {
  serve();
}
