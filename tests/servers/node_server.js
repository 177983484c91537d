// SPDX-License-Identifier: Apache-2.0 OR MIT
// HTTPS with Node.js, whose OpenSSL is linked statically and driven through memory BIOs.
"use strict";

const fs = require("fs");
const https = require("https");

const [cert, key] = process.argv.slice(2).map((path) => fs.readFileSync(path));

const server = https.createServer({ cert, key, minVersion: "TLSv1.2" }, (request, response) => {
  if (request.url !== "/keep") response.setHeader("Connection", "close");
  response.end("ok\n");
});
server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
