#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use super::*;

const ID: &str = "3f4e9a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789ab";
const CONTAINERD: &str = include_str!("../../../tests/fixtures/containers/containerd.json");
const SANDBOX: &str = include_str!("../../../tests/fixtures/containers/containerd-sandbox.json");
const CRIO: &str = include_str!("../../../tests/fixtures/containers/crio.json");
const DOCKER: &str = include_str!("../../../tests/fixtures/containers/docker.json");
const PODMAN: &str = include_str!("../../../tests/fixtures/containers/podman.json");

const BUNDLE: &str = "run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json";
const STORAGE: &str = "run/containers/storage/overlay-containers/ID/userdata/config.json";

fn write(root: &Path, place: &str, text: &str) -> PathBuf {
    let path = root.join(place.replace("ID", ID));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// The name on a host that has this one file.
fn name(place: &str, text: &str) -> Option<Name> {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), place, text);
    Containers::new(vec![root.path().into()]).name(ID)
}

fn pod(name: &str) -> Option<Name> {
    Some(Name::Pod(name.into()))
}

fn given(name: &str) -> Option<Name> {
    Some(Name::Given(name.into()))
}

#[test]
fn each_runtime_is_read() {
    assert_eq!(name(BUNDLE, CONTAINERD), pod("shop/web/nginx"));
    let k3s = "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json";
    assert_eq!(name(k3s, CONTAINERD), pod("shop/web/nginx"));
    assert_eq!(name(BUNDLE, SANDBOX), pod("shop/web/pause"));
    assert_eq!(
        name(STORAGE, CRIO),
        pod("openshift-ingress/router-default/router")
    );
    // The labels of its image would have it in kube-system.
    let docker = "var/lib/docker/containers/ID/config.v2.json";
    assert_eq!(name(docker, DOCKER), given("shop-web-1"));
    let dockershim = DOCKER.replace("/shop-web-1", "/k8s_nginx_web-0_shop_0f4b8d3a_0");
    assert_eq!(name(docker, &dockershim), pod("shop/web/nginx"));
    let podman = "var/lib/containers/storage/overlay-containers/containers.json";
    assert_eq!(name(podman, PODMAN), given("proxy"));
}

#[test]
fn a_bundle_without_a_pod_is_asked_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        STORAGE,
        r#"{"annotations": {"io.podman.annotations.init": "FALSE"}}"#,
    );
    let list = "var/lib/containers/storage/overlay-containers/containers.json";
    write(root.path(), list, PODMAN);
    let containers = Containers::new(vec!["/nowhere".into(), root.path().into()]);
    assert_eq!(containers.name(ID), given("proxy"));
}

#[test]
fn a_container_is_read_once() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), BUNDLE, CONTAINERD);
    let containers = Containers::new(vec![root.path().into()]);
    assert_eq!(containers.name(ID), pod("shop/web/nginx"));
    fs::remove_file(path).unwrap();
    assert_eq!(containers.name(ID), pod("shop/web/nginx"));
}

#[test]
fn what_is_remembered_is_bounded() {
    let containers = Containers::new(Vec::new());
    for number in 0..MAX_KNOWN + 10 {
        assert_eq!(containers.name(&format!("{number:064x}")), None);
    }
    assert!(containers.known.lock().unwrap().len() <= MAX_KNOWN);
}

#[test]
fn only_files_of_reasonable_size_are_read() {
    let root = tempfile::tempdir().unwrap();
    let path = write(root.path(), BUNDLE, CONTAINERD);
    let containers = || Containers::new(vec![root.path().into()]);
    let elsewhere = root.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert_eq!(containers().name(ID), None);
    fs::remove_file(&path).unwrap();
    // Sparse: nothing of it would be understood, and nothing of it is read.
    fs::File::create(&path)
        .unwrap()
        .set_len(MAX_FILE + 1)
        .unwrap();
    assert_eq!(containers().name(ID), None);
}

#[test]
fn an_id_is_never_a_path() {
    let containers = Containers::new(vec!["/".into()]);
    for id in ["", "..", "../../etc", &ID.to_uppercase(), &format!("{ID}0")] {
        assert_eq!(containers.name(id), None, "{id}");
    }
}
