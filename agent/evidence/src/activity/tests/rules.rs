//! What a sample counts for, case by case.

use crate::activity::kernel_functions::Meaning;
use crate::activity::{
    Activity, Basis, KernelWork, Mode, Observed, Place, Tls, Upkeep, UserCode, Verdict, classify,
};
use crate::fingerprint::Kind;
use tlsprof_common::InterruptTime;

const KINDS: [Kind; 6] = [
    Kind::Aes,
    Kind::ChaCha,
    Kind::Sha,
    Kind::PublicKey,
    Kind::Copy,
    Kind::Other,
];

fn user(code: UserCode, tls: Tls) -> Verdict {
    classify(&Observed {
        handshake: false,
        tls,
        place: Place::User(code),
    })
}

fn kernel(handshake: bool, stack: &[Meaning]) -> Verdict {
    classify(&Observed {
        handshake,
        tls: Tls::Unknown,
        place: Place::Kernel(KernelWork::of(stack.iter().copied().map(Some))),
    })
}

#[test]
fn code_is_encryption_only_where_it_proves_record_protection() {
    let suites = |hashed_mac| Tls::Seen {
        hashed_mac,
        chacha20: false,
    };
    let gcm = suites(false);
    let cbc = suites(true);
    for tls in [Tls::Unknown, Tls::Absent, gcm, cbc] {
        for kind in KINDS {
            let proves = match kind {
                Kind::Aes | Kind::ChaCha => matches!(tls, Tls::Seen { .. }),
                Kind::Sha => tls == cbc,
                Kind::PublicKey | Kind::Copy | Kind::Other => false,
            };
            let verdict = user(UserCode::Fingerprint(kind), tls);
            let encryption = verdict.activity == Activity::Encryption;
            assert_eq!(encryption, proves, "{kind:?} {tls:?}");
            assert_eq!((verdict.mode, verdict.basis), (Mode::User, Basis::Code));
        }
        let library = user(UserCode::TlsLibrary, tls).activity == Activity::Encryption;
        assert_eq!(library, tls != Tls::Absent, "{tls:?}");
        let unknown = user(UserCode::Unknown, tls);
        assert_eq!(unknown.activity, Activity::Application);
        assert_eq!(unknown.basis, Basis::Unclassified);
    }
}

#[test]
fn a_handshake_takes_all_that_its_thread_does() {
    for code in [
        UserCode::TlsLibrary,
        UserCode::Fingerprint(Kind::Other),
        UserCode::Unknown,
    ] {
        let observed = Observed {
            handshake: true,
            tls: Tls::Absent,
            place: Place::User(code),
        };
        let verdict = classify(&observed);
        assert_eq!(verdict.activity, Activity::Handshake);
        assert_eq!((verdict.mode, verdict.basis), (Mode::User, Basis::Phase));
    }
    let send = [Meaning::Decides(Activity::SocketIo)];
    for stack in [&send[..], &[]] {
        let verdict = kernel(true, stack);
        assert_eq!(verdict.activity, Activity::Handshake);
        assert_eq!((verdict.mode, verdict.basis), (Mode::System, Basis::Phase));
    }
}

#[test]
fn what_interrupts_a_handshake_is_not_part_of_it() {
    let stack = [
        Meaning::Decides(Activity::TcpOpen),
        Meaning::Interrupts,
        Meaning::Decides(Activity::SocketIo),
    ];
    let verdict = kernel(true, &stack);
    assert_eq!(verdict.activity, Activity::TcpOpen);
    assert_eq!(verdict.mode, Mode::Softirq);
    assert_eq!(verdict.basis, Basis::KernelFunction);
}

#[test]
fn what_was_interrupted_decides_nothing() {
    let stack = [
        Meaning::Interrupts,
        Meaning::Traces,
        Meaning::Decides(Activity::SocketIo),
    ];
    let verdict = kernel(false, &stack);
    assert_eq!(verdict.activity, Activity::Application);
    assert_eq!(verdict.mode, Mode::Softirq);
    assert_eq!(verdict.basis, Basis::Unclassified);
    assert!(!verdict.traced);
}

#[test]
fn the_innermost_that_decides_wins_over_hints_inside() {
    let (hint, close, send) = (
        Meaning::Hints(Activity::Application),
        Meaning::Decides(Activity::TcpClose),
        Meaning::Decides(Activity::SocketIo),
    );
    assert_eq!(
        kernel(false, &[hint, close, send]).activity,
        Activity::TcpClose
    );
    assert_eq!(
        kernel(false, &[send, close, hint]).activity,
        Activity::SocketIo
    );
    let hints = [Meaning::Hints(Activity::TcpClose), hint];
    assert_eq!(kernel(false, &hints).activity, Activity::TcpClose);
}

#[test]
fn probes_are_told_and_keep_the_activity_that_they_are_in() {
    let stack = [Meaning::Traces, Meaning::Decides(Activity::SocketIo)];
    let verdict = kernel(false, &stack);
    assert!(verdict.traced);
    assert_eq!(verdict.activity, Activity::SocketIo);
    let verdict = kernel(true, &stack);
    assert!(verdict.traced);
    assert_eq!(verdict.activity, Activity::Handshake);
}

#[test]
fn softirqs_are_in_a_threads_time_where_the_kernel_counts_them_there() {
    let softirq = kernel(false, &[Meaning::Interrupts]);
    assert_eq!(softirq.in_thread_time(InterruptTime::InThread), Some(true));
    assert_eq!(softirq.in_thread_time(InterruptTime::Apart), Some(false));
    assert_eq!(softirq.in_thread_time(InterruptTime::Unknown), None);
    for verdict in [kernel(false, &[]), user(UserCode::Unknown, Tls::Unknown)] {
        for interrupts in [
            InterruptTime::InThread,
            InterruptTime::Apart,
            InterruptTime::Unknown,
        ] {
            assert_eq!(verdict.in_thread_time(interrupts), Some(true));
        }
    }
}

#[test]
fn upkeep_is_told_beside_the_activity() {
    let (process, memory) = (
        Meaning::Keeps(Upkeep::Process),
        Meaning::Keeps(Upkeep::Memory),
    );
    let socket = Meaning::Decides(Activity::TcpClose);
    let cases = [
        // A page fault in exec is of the process; a socket that exit closes is not.
        (
            false,
            &[memory, process][..],
            Activity::Application,
            Some(Upkeep::Process),
        ),
        (
            false,
            &[memory],
            Activity::Application,
            Some(Upkeep::Memory),
        ),
        (false, &[socket, process], Activity::TcpClose, None),
        (
            true,
            &[memory],
            Activity::Handshake,
            Some(Upkeep::HandshakeMemory),
        ),
        (true, &[process], Activity::Handshake, None),
        (false, &[], Activity::Application, None),
        // What was interrupted is another's.
        (
            false,
            &[Meaning::Interrupts, process],
            Activity::Application,
            None,
        ),
    ];
    for (handshake, stack, activity, upkeep) in cases {
        let verdict = kernel(handshake, stack);
        assert_eq!(
            (verdict.activity, verdict.upkeep),
            (activity, upkeep),
            "{stack:?}"
        );
    }
    let loader = user(UserCode::Loader, Tls::Unknown);
    assert_eq!(loader.activity, Activity::Application);
    assert_eq!(loader.upkeep, Some(Upkeep::Loader));
}
