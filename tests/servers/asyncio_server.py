# SPDX-License-Identifier: Apache-2.0 OR MIT
"""HTTPS with asyncio, which drives OpenSSL through memory BIOs.

usage: asyncio_server.py CERT KEY
"""

import asyncio
import ssl
import sys

ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client went away: its right
    finally:
        writer.close()


async def main() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[1:3])
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, backlog=1024)
    print(f"port {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


asyncio.run(main())
