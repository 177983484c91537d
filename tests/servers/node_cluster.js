// SPDX-License-Identifier: Apache-2.0 OR MIT
// HTTPS with a cluster of Node.js processes on one port, which get its connections in turn. A
// cluster has the same ticket keys in all of them; with `own` each takes some of its own.
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
  server.listen(0, "127.0.0.1", () => {
    if (keys === "own") server.setTicketKeys(crypto.randomBytes(48));
    process.send(server.address().port);
  });
}

if (cluster.isPrimary) {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  let waiting = Number(workers);
  cluster.on("message", (_worker, port) => {
    waiting -= 1;
    if (waiting === 0) console.log(`port ${port}`);
  });
  for (let started = 0; started < Number(workers); started += 1) cluster.fork();
} else {
  serve();
}
