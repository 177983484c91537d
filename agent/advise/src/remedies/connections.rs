//! What to change so that connections live longer.

use super::{Advice, Server};

pub(super) const fn limit(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Raise the number of requests that a connection may carry.",
            "keepalive_requests 1000;",
        ),
        Server::Apache => (
            "Raise the number of requests that a connection may carry.",
            "MaxKeepAliveRequests 1000",
        ),
        Server::HaProxy => (
            "HAProxy has no such limit for HTTP/1: it passes on what the server behind it says. \
             Raise the limit there, or let HAProxy keep the client's connection.",
            "option http-keep-alive",
        ),
        Server::NodeJs => ("Take the limit off.", "server.maxRequestsPerSocket = 0"),
        Server::Envoy => (
            "Raise or remove the limit in the connection manager's common_http_protocol_options.",
            "max_requests_per_connection: 1000",
        ),
        Server::Domino => (
            "Raise the limit in the Server document, then restart the HTTP task. The default is 5.",
            "Internet Protocols, HTTP,\n\
             Maximum requests over a single connection: 100",
        ),
        Server::Stunnel => (
            "stunnel passes connections on: raise the limit in the server behind it.",
            "",
        ),
        Server::Caddy | Server::Unknown => (
            "Raise the number of requests that the server takes on a persistent connection to 100 \
             or more.",
            "",
        ),
    }
}

pub(super) const fn keep_alive(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Let connections stay open between requests: 0 switches that off.",
            "keepalive_timeout 75s;\nkeepalive_requests 1000;",
        ),
        Server::Apache => (
            "Let connections stay open between requests.",
            "KeepAlive On\nKeepAliveTimeout 5\nMaxKeepAliveRequests 1000",
        ),
        Server::HaProxy => (
            "Remove `option httpclose`, and let connections stay open between requests.",
            "option http-keep-alive\ntimeout http-keep-alive 10s",
        ),
        Server::NodeJs => (
            "Do not answer with `Connection: close`, and let connections stay open.",
            "server.keepAliveTimeout = 5000\nserver.maxRequestsPerSocket = 0",
        ),
        Server::Envoy => (
            "Remove `max_requests_per_connection: 1` from common_http_protocol_options.",
            "idle_timeout: 60s",
        ),
        Server::Domino => (
            "Allow persistent connections in the Server document, then restart the HTTP task.",
            "Internet Protocols, HTTP,\n\
             Maximum requests over a single connection: 100",
        ),
        Server::Stunnel => (
            "stunnel passes connections on: switch keep-alive on in the server behind it.",
            "",
        ),
        Server::Caddy | Server::Unknown => (
            "Switch HTTP keep-alive on, in the server and in what stands before it; see that \
             clients do not ask to close.",
            "",
        ),
    }
}

pub(super) const fn time_wait(server: Server) -> Advice {
    let (_, directive) = keep_alive(server);
    let (_, limit) = limit(server);
    (
        "Let connections carry more requests, so that fewer are closed. TIME_WAIT itself is no \
         fault: it is what a closed connection leaves for a minute with who closes first.",
        if directive.is_empty() {
            limit
        } else {
            directive
        },
    )
}

pub(super) const fn upstream(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Keep connections to the upstream open: a pool in the upstream block, HTTP/1.1, and no \
             Connection header. nginx 1.29.7 and later do so by default: remove `keepalive 0`, \
             `proxy_http_version 1.0` and `proxy_set_header Connection close` there.",
            "upstream backend { server 10.0.0.2:443; keepalive 32; }\n\
             proxy_http_version 1.1;\n\
             proxy_set_header Connection \"\";",
        ),
        Server::Apache => (
            "Let mod_proxy keep its connections, and do not set proxy-nokeepalive.",
            "ProxyPass \"/\" \"https://backend.example/\" enablereuse=on",
        ),
        Server::HaProxy => (
            "Remove `option http-server-close`, and let connections to servers be shared.",
            "option http-keep-alive\nhttp-reuse safe",
        ),
        Server::NodeJs => (
            "Make all requests with one agent that keeps connections.",
            "new https.Agent({ keepAlive: true })",
        ),
        Server::Envoy => (
            "Remove `max_requests_per_connection: 1` from the cluster's HTTP options.",
            "",
        ),
        Server::Domino | Server::Stunnel | Server::Caddy | Server::Unknown => (
            "Keep a pool of open connections to the other server instead of opening one for each \
             request.",
            "",
        ),
    }
}

pub(super) const fn ports(server: Server) -> Advice {
    let (_, directive) = upstream(server);
    (
        "Keep connections to the other server open, so that fewer ports wait in TIME_WAIT. Until \
         then: widen net.ipv4.ip_local_port_range, set net.ipv4.tcp_tw_reuse=1, or spread the \
         connections over several addresses.",
        directive,
    )
}

pub(super) const fn accept_queue(server: Server) -> Advice {
    match server {
        Server::Nginx => (
            "Where connections wait long: take off work, or add workers and CPUs. Where they come in \
             bursts: allow a longer queue, in the kernel too.",
            "listen 443 ssl backlog=4096;\n# sysctl net.core.somaxconn=4096",
        ),
        Server::Apache => (
            "Where connections wait long: take off work, or allow more workers (MaxRequestWorkers) \
             and CPUs. Where they come in bursts: allow a longer queue, in the kernel too.",
            "ListenBacklog 4096\n# sysctl net.core.somaxconn=4096",
        ),
        Server::HaProxy => (
            "Where connections wait long: take off work, raise maxconn, or add threads and CPUs. \
             Where they come in bursts: allow a longer queue in the frontend, in the kernel too.",
            "backlog 4096\n# sysctl net.core.somaxconn=4096",
        ),
        Server::NodeJs => (
            "Where connections wait long: take off work, or add processes (cluster) and CPUs. Where \
             they come in bursts: allow a longer queue (511 by default), in the kernel too.",
            "server.listen({ port: 443, backlog: 4096 })\n// sysctl net.core.somaxconn=4096",
        ),
        Server::Envoy => (
            "Where connections wait long: take off work, or add workers (--concurrency) and CPUs. \
             Where they come in bursts: allow a longer queue in the listener, in the kernel too.",
            "tcp_backlog_size: 4096\n# sysctl net.core.somaxconn=4096",
        ),
        Server::Domino => (
            "Where connections wait long: take off work, or raise the number of active threads in \
             the Server document (Internet Protocols, HTTP) if there is CPU left. Where they come in \
             bursts: allow longer queues in the kernel, then restart the HTTP task.",
            "sysctl net.core.somaxconn=4096",
        ),
        Server::Stunnel | Server::Caddy | Server::Unknown => (
            "Where connections wait long: take off work, or add threads, processes or CPUs. Where \
             they come in bursts: allow a longer queue (the argument of listen(2)), in the kernel too.",
            "sysctl net.core.somaxconn=4096",
        ),
    }
}
