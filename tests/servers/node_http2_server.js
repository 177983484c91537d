// SPDX-License-Identifier: Apache-2.0 OR MIT
// HTTP/2 with Node.js over TLS 1.2, and HTTP/1.1 for clients that do not ask for it. Answers 4 KiB,
// or as many bytes as the path says: /65536.
//
// usage: node_http2_server.js CERTIFICATE KEY CIPHERS [DH_PARAMETERS]
"use strict";

const fs = require("fs");
const http2 = require("http2");

const SHORT = 4096;
const LONGEST = 1 << 20;
const BODY = Buffer.alloc(LONGEST, "x");

const [cert, key, ciphers, dhparam] = process.argv.slice(2);
const options = {
  cert: fs.readFileSync(cert),
  key: fs.readFileSync(key),
  ciphers,
  honorCipherOrder: true,
  maxVersion: "TLSv1.2",
  allowHTTP1: true,
};
if (dhparam) options.dhparam = fs.readFileSync(dhparam);

const server = http2.createSecureServer(options, (request, response) => {
  if (request.httpVersionMajor === 1) response.setHeader("Connection", "close");
  const length = Math.min(Number(request.url.slice(1)) || SHORT, LONGEST);
  response.setHeader("Content-Length", length);
  response.end(BODY.subarray(0, length));
});
server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
