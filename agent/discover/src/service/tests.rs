use proptest::prelude::*;

use super::*;

const HYBRID: &str = include_str!("../../../tests/fixtures/proc/cgroup_hybrid");
const DOCKER_V1: &str = include_str!("../../../tests/fixtures/proc/cgroup_docker_v1");
const ID: &str = "3f4e9a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789ab";

fn name(cgroup: &str, executable: &str) -> String {
    let cgroup = Cgroup::parse(&cgroup.replace("ID", ID));
    service_name(&cgroup, Path::new(executable), "comm").to_string()
}

#[test]
fn units_name_services() {
    for (path, expected) in [
        ("/system.slice/nginx.service", "nginx"),
        (
            "/system.slice/system-postgresql.slice/postgresql@15-main.service",
            "postgresql@15-main",
        ),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/foo.service",
            "foo",
        ),
        ("/system.slice/nginx.service/workers", "nginx"),
        ("/system.slice/_cpu.service", "cpu"),
        ("/../../system.slice/my web.service", "my web"),
        // podman in a unit of its own (quadlet)
        ("/system.slice/shop.service/libpod-payload-ID", "shop"),
    ] {
        assert_eq!(
            name(&format!("0::{path}\n"), "/usr/bin/x"),
            expected,
            "{path}"
        );
    }
}

#[test]
fn sessions_scopes_and_launchers_name_nothing() {
    for path in [
        "/",
        "/init.scope",
        "/user.slice/user-0.slice/session-3.scope",
        "/user.slice/user-1000.slice/user@1000.service/init.scope",
        "/user.slice/user-1000.slice/user@1000.service/app.slice/run-u1.scope",
        "/system.slice/ssh.service",
        "/system.slice/sshd@3-10.0.0.1:22-10.0.0.2:5000.service",
        "/system.slice/cron.service",
        "/system.slice/docker.service",
        "/system.slice/containerd.service",
        "/machine.slice/libpod-conmon-ID.scope",
        "/system.slice/.service",
    ] {
        assert_eq!(
            name(&format!("0::{path}\n"), "/usr/bin/node"),
            "node",
            "{path}"
        );
    }
}

#[test]
fn containers_are_named_by_program_and_id() {
    for path in [
        "/docker/ID",
        "/system.slice/docker-ID.scope",
        "/system.slice/docker-ID.scope/system.slice/inner.service",
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c.slice/cri-containerd-ID.scope",
        "/kubepods/besteffort/pod8d5c2d3e-1111-2222-3333-444455556666/ID",
        "/kubepods.slice/kubepods-pod1b2c.slice/crio-ID.scope",
        "/system.slice/containerd.service/kubepods-pod1b2c.slice:cri-containerd:ID",
        "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
        "/../docker-ID.scope",
        // cgroupfs drivers, and runtimes inside others (kind, k3s, nested Docker)
        "/kubepods/burstable/pod8d5c2d3e-1111-2222-3333-444455556666/crio-ID",
        "/docker/00001b2c3d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd/kubelet/kubepods/pod1b2c/ID",
        "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1b2c.slice/cri-containerd-ID.scope",
        "/default/ID",
        "/machine.slice/libpod-ID.scope",
        "/libpod_parent/libpod-ID",
        "/machine.slice/machine-libpod_pod_1b2c.slice/libpod-ID.scope/container",
        "/ecs/1b2c/ID",
        "/actions_job/ID",
    ] {
        assert_eq!(
            name(&format!("0::{path}\n"), "/usr/sbin/nginx"),
            "nginx@3f4e9a1b2c3d",
            "{path}"
        );
    }
    assert_eq!(
        name(
            "0::/lxc.payload.web/system.slice/nginx.service\n",
            "/x/nginx"
        ),
        "nginx@web"
    );
    let nspawn = "0::/machine.slice/systemd-nspawn@web.service/payload/init.scope\n";
    assert_eq!(name(nspawn, "/x/nginx"), "nginx@web");
}

#[test]
fn containers_with_a_name_are_known_by_it() {
    let named = |cgroup| service_name(&cgroup, Path::new("/usr/sbin/nginx"), "nginx").to_string();
    assert_eq!(
        named(Cgroup::Pod("shop/web/nginx".into())),
        "shop/web/nginx"
    );
    assert_eq!(
        named(Cgroup::Container("shop-web-1".into())),
        "nginx@shop-web-1"
    );
    // A host that knows nothing of it, and what is no container at all.
    let nobody = Containers::new(Vec::new());
    let unnamed = Cgroup::parse(&format!("0::/docker/{ID}\n")).named(&nobody);
    assert_eq!(named(unnamed), "nginx@3f4e9a1b2c3d");
    assert_eq!(Cgroup::Other.named(&nobody), Cgroup::Other);
}

#[test]
fn what_only_looks_like_a_container_id_is_none() {
    let capitals = ID.to_uppercase();
    let short = ID.get(1..).unwrap_or_default();
    for part in [
        capitals.as_str(),
        short,
        &format!("x{ID}"),
        &format!("é{short}"),
    ] {
        assert_eq!(name(&format!("0::/{part}\n"), "/bin/web"), "web", "{part}");
    }
}

#[test]
fn version_1_hierarchies_are_understood() {
    assert_eq!(name(HYBRID, "/usr/sbin/nginx"), "nginx");
    assert_eq!(name(DOCKER_V1, "/usr/bin/node"), "node@3f4e9a1b2c3d");
    assert_eq!(
        name("4:memory:/docker/ID\n0::/\n", "/bin/web"),
        "web@3f4e9a1b2c3d"
    );
}

#[test]
fn executables_name_the_rest() {
    assert_eq!(name("0::/\n", "/usr/sbin/nginx (deleted)"), "nginx");
    assert_eq!(name("0::/\n", "/usr/bin/python3.11"), "python3.11");
    assert_eq!(name("", "/opt/a b/we\nb"), "we\u{fffd}b");
    // Only the kernel's silence about the executable brings in the process's own name.
    assert_eq!(name("0::/\n", ""), "comm");
    assert_eq!(
        service_name(&Cgroup::Other, Path::new(""), "").as_str(),
        "unknown"
    );
    assert_eq!(
        service_name(&Cgroup::Other, Path::new("/usr/lib/systemd"), "(sd-pam)").as_str(),
        "systemd"
    );
}

proptest! {
    #[test]
    fn any_cgroup_is_survived(text: String) {
        Cgroup::parse(&text);
    }

    #[test]
    fn any_path_gives_a_clean_name(path in "[/a-f0-9@:.\\-é_ ]{0,80}(\\.service|\\.scope)?", comm: String) {
        let cgroup = Cgroup::parse(&format!("0::{path}"));
        let name = service_name(&cgroup, Path::new(&path), &comm);
        prop_assert!(!name.as_str().is_empty());
        prop_assert!(!name.as_str().contains(char::is_control));
    }
}
