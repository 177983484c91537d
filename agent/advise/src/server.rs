//! Which server it is, so that the remedy names its directive.

use tlsprof_common::labelled;

labelled! {
    /// A server that remedies are known for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Server {
        /// nginx and what is built from it: OpenResty, Angie, freenginx, Tengine.
        Nginx = "nginx",
        /// Apache httpd.
        Apache = "Apache httpd",
        /// HAProxy.
        HaProxy = "HAProxy",
        /// Node.js.
        NodeJs = "Node.js",
        /// Envoy.
        Envoy = "Envoy",
        /// HCL Domino.
        Domino = "HCL Domino",
        /// stunnel.
        Stunnel = "stunnel",
        /// Caddy.
        Caddy = "Caddy",
        /// Another: general advice.
        Unknown = "any server",
    }
}

/// Tasks of Domino that serve TLS. Their names alone could be anybody's.
const DOMINO_TASKS: [&str; 7] = ["http", "server", "smtp", "ldap", "imap", "pop3", "diiop"];

/// Last parts of the names of programs that work beside nginx.
const BESIDE_NGINX: [&str; 5] = ["agent", "controller", "exporter", "gateway", "ingress"];

impl Server {
    /// The server whose executable has that path. One that was replaced since it
    /// started has ` (deleted)` at its end.
    pub fn of(executable: &str) -> Self {
        let path = executable.trim_end_matches(" (deleted)");
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        match name {
            "nginx" | "openresty" | "angie" | "freenginx" | "tengine" => Self::Nginx,
            "apache2" | "httpd" | "httpd.worker" | "httpd.event" => Self::Apache,
            "haproxy" => Self::HaProxy,
            "node" | "nodejs" => Self::NodeJs,
            "envoy" => Self::Envoy,
            "caddy" => Self::Caddy,
            "stunnel" | "stunnel4" | "stunnel5" => Self::Stunnel,
            task if DOMINO_TASKS.contains(&task) && is_dominos(folder) => Self::Domino,
            // nginx-1.27, nginx-debug: a name of its own, as packages and tests have it.
            other if other.starts_with("nginx-") && !is_beside_nginx(other) => Self::Nginx,
            _ => Self::Unknown,
        }
    }
}

/// nginx-prometheus-exporter, nginx-ingress-controller: named after the nginx that they watch or
/// configure.
fn is_beside_nginx(name: &str) -> bool {
    let part = name.rsplit('-').next();
    part.is_some_and(|part| BESIDE_NGINX.contains(&part))
}

/// `/opt/hcl/domino/notes/latest/linux`, `/opt/ibm/domino/notes/...`,
/// `/opt/lotus/notes/...`.
fn is_dominos(folder: &str) -> bool {
    let folder = folder.to_ascii_lowercase();
    let mut parts = folder.split('/');
    parts.any(|part| part == "domino" || part == "notes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_by_the_name_of_their_executable() {
        let cases = [
            ("/usr/sbin/nginx", Server::Nginx),
            ("/usr/sbin/nginx (deleted)", Server::Nginx),
            ("/usr/local/openresty/nginx/sbin/nginx", Server::Nginx),
            ("/tmp/nginx-4711", Server::Nginx),
            ("/usr/sbin/nginx-debug", Server::Nginx),
            ("/usr/sbin/nginx-1.27", Server::Nginx),
            ("/usr/bin/nginx-prometheus-exporter", Server::Unknown),
            ("/nginx-ingress-controller", Server::Unknown),
            ("/nginx-ingress", Server::Unknown),
            ("/usr/sbin/apache2", Server::Apache),
            ("/usr/sbin/httpd", Server::Apache),
            ("/usr/sbin/haproxy", Server::HaProxy),
            ("/usr/bin/node", Server::NodeJs),
            ("/usr/local/bin/envoy", Server::Envoy),
            ("/usr/bin/stunnel4", Server::Stunnel),
            ("/usr/bin/caddy", Server::Caddy),
            ("/usr/bin/python3.11", Server::Unknown),
            ("", Server::Unknown),
            ("nginx", Server::Nginx),
        ];
        for (path, server) in cases {
            assert_eq!(Server::of(path), server, "{path}");
        }
    }

    #[test]
    fn a_task_called_http_is_dominos_only_in_its_folder() {
        let latest = "/opt/hcl/domino/notes/latest/linux";
        assert_eq!(Server::of(&format!("{latest}/http")), Server::Domino);
        assert_eq!(Server::of(&format!("{latest}/server")), Server::Domino);
        let old = "/opt/ibm/domino/notes/90010/linux/http";
        assert_eq!(Server::of(old), Server::Domino);
        assert_eq!(Server::of("/usr/local/bin/http"), Server::Unknown);
        assert_eq!(Server::of("/srv/app/server"), Server::Unknown);
    }
}
