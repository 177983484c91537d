//! What the runtimes' files say of a container.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

/// What people call a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// In Kubernetes: `NAMESPACE/OWNER/CONTAINER`.
    Pod(Arc<str>),
    /// Elsewhere: the name that it was given.
    Given(Arc<str>),
}

/// Bound of each part of a name: Kubernetes allows 253 bytes, Docker no more than a file's name has.
const MAX_PART: usize = 253;
/// The letters of generated names: no vowels, so that no words come out
/// (k8s.io/apimachinery/pkg/util/rand).
const GENERATED: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of the random end of a pod's name.
const RANDOM_END: usize = 5;
/// Lengths of the hash of a ReplicaSet, and of the minute of a CronJob's run.
const HASH: std::ops::RangeInclusive<usize> = 6..=10;

/// The OCI bundle's config.json, where containerd and CRI-O keep the pod in annotations.
#[derive(Deserialize)]
struct Bundle {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

pub(super) fn oci(text: &[u8], _: &str) -> Option<Name> {
    let bundle: Bundle = serde_json::from_slice(text).ok()?;
    let find = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| bundle.annotations.get(*name))
            .map(String::as_str)
    };
    let namespace = find([
        "io.kubernetes.cri.sandbox-namespace",
        "io.kubernetes.pod.namespace",
    ])?;
    let pod = find(["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"])?;
    let container = find([
        "io.kubernetes.cri.container-name",
        "io.kubernetes.container.name",
    ]);
    // containerd's sandbox, which only holds the namespaces, has no name; CRI-O's is POD.
    let container = container.filter(|name| *name != "POD").unwrap_or("pause");
    in_pod(namespace, pod, container)
}

/// Docker's config.v2.json. Labels are not looked at: images bring some along, and could pose as
/// another service by them.
#[derive(Deserialize)]
struct Docker {
    #[serde(rename = "Name")]
    name: String,
}

pub(super) fn docker(text: &[u8], _: &str) -> Option<Name> {
    let docker: Docker = serde_json::from_slice(text).ok()?;
    let name = docker.name.strip_prefix('/').unwrap_or(&docker.name);
    pod_of_dockershim(name).or_else(|| given(without_task(name)))
}

/// `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT`, as cri-dockerd names containers.
fn pod_of_dockershim(name: &str) -> Option<Name> {
    let mut parts = name.strip_prefix("k8s_")?.split('_');
    let (container, pod, namespace) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next()?;
    in_pod(
        namespace,
        pod,
        if container == "POD" {
            "pause"
        } else {
            container
        },
    )
}

/// Swarm's names are `SERVICE.SLOT.TASK`: the replicas of a service belong together.
fn without_task(name: &str) -> &str {
    let service = || {
        let (rest, task) = name.rsplit_once('.')?;
        let (service, slot) = rest.rsplit_once('.')?;
        let generated = task.len() == 25 && task.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let numbered = !slot.is_empty() && slot.bytes().all(|byte| byte.is_ascii_digit());
        (generated && numbered).then_some(service)
    };
    service().unwrap_or(name)
}

/// One entry of containers/storage's list, which podman and CRI-O share.
#[derive(Deserialize)]
struct Stored {
    id: String,
    #[serde(default)]
    names: Vec<String>,
}

pub(super) fn storage(text: &[u8], id: &str) -> Option<Name> {
    let all: Vec<Stored> = serde_json::from_slice(text).ok()?;
    let one = all.iter().find(|one| one.id == id)?;
    given(one.names.first()?)
}

fn given(name: &str) -> Option<Name> {
    is_sound(name).then(|| Name::Given(name.into()))
}

fn in_pod(namespace: &str, pod: &str, container: &str) -> Option<Name> {
    let parts = [namespace, owner(pod), container];
    let sound = parts.iter().all(|part| is_sound(part));
    sound.then(|| Name::Pod(parts.join("/").into()))
}

/// What both Kubernetes and Docker allow; a slash would make two parts of one.
fn is_sound(part: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !part.is_empty() && part.len() <= MAX_PART && part.bytes().all(allowed)
}

/// The Deployment, DaemonSet, StatefulSet or CronJob of a pod, by its name: the host knows no more.
///
/// They append, in this order, `-HASH-RANDOM`, `-RANDOM`, `-NUMBER`, `-MINUTE-RANDOM`. The name
/// of a pod that was made by hand is kept, unless it looks the same.
fn owner(pod: &str) -> &str {
    let generated = |text: &str| text.bytes().all(|byte| GENERATED.contains(&byte));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((rest, end)) = pod.rsplit_once('-') else {
        return pod;
    };
    if end.len() == RANDOM_END && generated(end) {
        return match rest.rsplit_once('-') {
            Some((name, hash))
                if HASH.contains(&hash.len()) && (generated(hash) || number(hash)) =>
            {
                name
            }
            _ => rest,
        };
    }
    if number(end) { rest } else { pod }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pods_are_known_by_their_owner() {
        for (pod, expected) in [
            ("web-7d4b9c6f5-x2x9z", "web"),
            ("web-front-6b8b9d7c4d-4kq2m", "web-front"),
            ("coredns-5d78c9869d-abcde", "coredns-5d78c9869d-abcde"),
            ("node-exporter-k8s9x", "node-exporter"),
            ("postgres-0", "postgres"),
            ("postgres-main-12", "postgres-main"),
            ("backup-28412345-zx9kq", "backup"),
            ("kube-apiserver-node1", "kube-apiserver-node1"),
            ("my-cache", "my-cache"),
            ("single", "single"),
            ("", ""),
        ] {
            assert_eq!(owner(pod), expected, "{pod}");
        }
    }

    #[test]
    fn swarm_replicas_belong_together() {
        assert_eq!(
            without_task("shop_web.3.k1zdpb7f8b3c9vq2m4x5n6t7r"),
            "shop_web"
        );
        assert_eq!(without_task("web.example.org"), "web.example.org");
    }

    #[test]
    fn hostile_names_are_none() {
        for name in ["a/b", "a b", "a\nb", "", "é", &"a".repeat(254)] {
            assert_eq!(given(name), None, "{name:?}");
            assert_eq!(in_pod("default", "web-0", name), None, "{name:?}");
        }
        assert_eq!(docker(br#"{"Name": "/../../etc"}"#, ""), None);
        assert_eq!(docker(br#"{"Name": ["/web"]}"#, ""), None);
        assert_eq!(oci("[".repeat(100_000).as_bytes(), ""), None);
    }

    proptest! {
        #[test]
        fn any_file_is_survived(text: Vec<u8>) {
            for parse in [oci, docker, storage] {
                parse(&text, "id");
            }
        }

        #[test]
        fn any_pod_has_an_owner_that_begins_its_name(pod in "[a-z0-9-]{0,30}") {
            prop_assert!(pod.starts_with(owner(&pod)));
        }
    }
}
