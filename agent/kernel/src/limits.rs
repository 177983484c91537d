//! Resource limits that profiling needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the locked-memory limit, which bounds BPF maps before Linux 5.11
/// (kernel commit d5299b67dd59 moved them to memory cgroups), and the limit of
/// open files to what the hard limit allows: each probe link holds one. Failure
/// is no error here: where it matters, loading fails and says so.
pub(crate) fn raise() {
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    if setrlimit(Resource::Memlock, unlimited).is_err() {
        raise_to_hard_limit(Resource::Memlock);
    }
    raise_to_hard_limit(Resource::Nofile);
}

fn raise_to_hard_limit(resource: Resource) {
    let hard = getrlimit(resource).maximum;
    let _ = setrlimit(
        resource,
        Rlimit {
            current: hard,
            maximum: hard,
        },
    );
}
