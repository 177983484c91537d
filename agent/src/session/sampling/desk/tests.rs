#![allow(clippy::unwrap_used, reason = "a failed test should stop")]

mod kernel;

use super::*;
use crate::session::sampling::kernel::Source;
use tlsprof_common::{Device, LifetimeCpu, ProcessEvent};
use tlsprof_discover::Error;
use tlsprof_discover::image::Mapping;
use tlsprof_discover::ports::ListeningPorts;
use tlsprof_discover::process::{CpuTime, Process, Stat};
use tlsprof_discover::selection::Selection;
use tlsprof_discover::service::{Cgroup, service_name};
use tlsprof_evidence::activity::kernel_symbols::KernelFunctions;
use tlsprof_evidence::callers::UserStack;

const SERVER: Pid = 10;
const OTHER: Pid = 11;
const CHILD: Pid = 12;
const LIBRARY: u64 = 0x7000_0000;

/// The functions of a kernel: close, work for the network, and none of the list.
const KALLSYMS: &[u8] = b"\
ffffffff81000000 T tcp_close
ffffffff81001000 T tcp_v4_do_rcv
ffffffff81002000 T handle_softirqs
ffffffff81003000 T nothing_known
ffffffff81004000 T tcp_v4_syn_recv_sock
";
const CLOSE: u64 = 0xffff_ffff_8100_0010;
const SOFTIRQ: u64 = 0xffff_ffff_8100_2010;
const UNKNOWN: u64 = 0xffff_ffff_8100_3010;
const SYN: u64 = 0xffff_ffff_8100_4010;

/// Two programs, of which the server has a TLS library.
#[derive(Debug)]
struct Two;

impl ProcessSource for Two {
    fn pids(&self) -> Result<Vec<Pid>, Error> {
        Ok(vec![SERVER, OTHER])
    }

    fn stat(&self, _pid: Pid) -> Result<Option<Stat>, Error> {
        Ok(None)
    }

    fn process(&self, pid: Pid) -> Result<Option<Process>, Error> {
        let executable = match pid {
            SERVER => "/usr/sbin/server",
            _ => "/usr/bin/other",
        };
        Ok(Some(Process {
            pid,
            parent: 1,
            start_time: 1,
            name: String::new(),
            executable: executable.into(),
            cgroup: Cgroup::Other,
            service: service_name(&Cgroup::Other, executable.as_ref(), ""),
            cpu: CpuTime::default(),
        }))
    }

    fn images(&self, _pid: Pid) -> Result<Option<Vec<Mapping>>, Error> {
        Ok(Some(vec![Mapping {
            start: LIBRARY,
            end: LIBRARY + 0x1000,
            file_offset: 0,
            device: Device { major: 8, minor: 1 },
            inode: 5,
            path: "/lib/libcrypto.so.3".into(),
            deleted: false,
        }]))
    }
}

fn in_user_mode(process: Pid, instruction: u64) -> CpuSample {
    CpuSample {
        process,
        before_handshakes: false,
        handshake: false,
        instruction,
        code: vec![0x90; 256],
        at: 128,
        kernel_stack: Vec::new(),
        user_stack: UserStack::default(),
        count: 1,
    }
}

fn in_kernel(process: Pid, stack: &[u64]) -> CpuSample {
    CpuSample {
        code: Vec::new(),
        at: 0,
        kernel_stack: stack.to_vec(),
        user_stack: UserStack::default(),
        ..in_user_mode(process, 0x1000)
    }
}

/// What was counted for the server, and elsewhere.
fn counted(interrupts: InterruptTime, samples: &[CpuSample]) -> (Counts, Counts) {
    let (booking, elsewhere) = booked(interrupts, samples);
    (booking.counts, elsewhere)
}

/// Both processes, the server selected.
fn table_of_the_server() -> ProcessTable<Two> {
    let mut table = ProcessTable::new(Two);
    table.scan().unwrap();
    let selection = Selection::Pid(SERVER);
    table
        .select(&selection, &ListeningPorts::default())
        .unwrap();
    table
}

/// A desk that knows a kernel.
fn desk_of(kallsyms: &[u8]) -> SampleDesk {
    let functions = KernelFunctions::parse(kallsyms).map_err(|error| error.to_string());
    let mut desk = SampleDesk::default();
    let nothing = Source {
        modules: || None,
        functions: || Err(String::new()),
    };
    desk.know_kernel(
        Kernel::known(functions, None, nothing),
        InterruptTime::InThread,
    );
    desk
}

/// The server has TLS.
fn scene_of(table: &ProcessTable<Two>, starting_since: Option<u64>) -> Scene<'_, Two> {
    let seen = Tls::Seen {
        hashed_mac: false,
        chacha20: true,
    };
    let service = table.service_of(SERVER).unwrap().as_str();
    Scene {
        table,
        tls: BTreeMap::from([(service, seen)]),
        starting_since,
        around: &|_, _| Err(io::ErrorKind::NotFound.into()),
    }
}

fn fork() -> ProcessEvent {
    ProcessEvent::Fork {
        parent: SERVER,
        child: CHILD,
        comm: "server".into(),
    }
}

fn booked(interrupts: InterruptTime, samples: &[CpuSample]) -> (Booking, Counts) {
    let table = table_of_the_server();
    let mut desk = desk_of(KALLSYMS);
    desk.interrupts = interrupts;
    let scene = scene_of(&table, None);
    for sample in samples {
        desk.take(&scene, sample);
    }
    let name = table.service_of(SERVER).unwrap().as_str().to_owned();
    let mut booked = desk.settle(&BTreeSet::from([name]));
    assert!(desk.by_service.is_empty(), "others are not selected");
    let booking = booked.pop().map(|(_, booking)| booking);
    let elsewhere = desk.elsewhere.waiting();
    let elsewhere = elsewhere.map(|(activity, count)| ((activity, Mode::Softirq), count));
    (booking.unwrap_or_default(), elsewhere.collect())
}

fn one(activity: Activity, mode: Mode) -> Counts {
    Counts::from([((activity, mode), 1)])
}

#[test]
fn a_sample_counts_for_its_service_if_that_is_selected() {
    let of = |process| {
        let samples = [in_user_mode(process, LIBRARY)];
        counted(InterruptTime::InThread, &samples)
    };
    assert_eq!(of(SERVER).0, one(Activity::Encryption, Mode::User));
    assert_eq!(of(OTHER), (Counts::new(), Counts::new()));
    assert_eq!(of(4711), (Counts::new(), Counts::new()));
}

#[test]
fn user_code_outside_the_library_is_told_by_its_instructions() {
    let elsewhere = in_user_mode(SERVER, 0x1000);
    let (counts, _) = counted(InterruptTime::InThread, &[elsewhere]);
    assert_eq!(counts, one(Activity::Application, Mode::User));
}

#[test]
fn the_kernel_is_told_by_its_functions() {
    let samples = [in_kernel(SERVER, &[UNKNOWN, CLOSE, UNKNOWN])];
    let (counts, _) = counted(InterruptTime::InThread, &samples);
    assert_eq!(counts, one(Activity::TcpClose, Mode::System));
}

#[test]
fn a_softirq_counts_for_who_pays() {
    let on = |process| in_kernel(process, &[SYN, SOFTIRQ, CLOSE]);
    let open = |mode| one(Activity::TcpOpen, mode);
    let nothing = Counts::new;
    let of = |interrupts, process| counted(interrupts, &[on(process)]);
    assert_eq!(
        of(InterruptTime::InThread, SERVER),
        (open(Mode::System), nothing())
    );
    assert_eq!(
        of(InterruptTime::Apart, SERVER),
        (nothing(), open(Mode::Softirq))
    );
    for interrupts in [InterruptTime::InThread, InterruptTime::Apart] {
        for process in [OTHER, 0] {
            assert_eq!(of(interrupts, process), (nothing(), open(Mode::Softirq)));
        }
    }
}

#[test]
fn upkeep_of_the_kernel_is_nobodys() {
    let idle = in_kernel(0, &[UNKNOWN, SOFTIRQ]);
    let asleep = in_kernel(0, &[UNKNOWN]);
    let counts = counted(InterruptTime::InThread, &[idle, asleep]);
    assert_eq!(counts, (Counts::new(), Counts::new()));
}

#[test]
fn a_handshake_has_what_interrupts_it_where_its_thread_pays() {
    let at_handshake = |sample| CpuSample {
        handshake: true,
        ..sample
    };
    let user = at_handshake(in_user_mode(SERVER, 0x1000));
    let (counts, _) = counted(InterruptTime::InThread, &[user]);
    assert_eq!(counts, one(Activity::Handshake, Mode::User));
    let softirq = at_handshake(in_kernel(SERVER, &[SYN, SOFTIRQ, CLOSE]));
    let (counts, _) = counted(InterruptTime::InThread, std::slice::from_ref(&softirq));
    assert_eq!(counts, one(Activity::Handshake, Mode::System));
    let (_, elsewhere) = counted(InterruptTime::Apart, &[softirq]);
    assert_eq!(elsewhere, one(Activity::TcpOpen, Mode::Softirq));
}

/// Before its first handshake, in the TLS library.
fn at_start(process: Pid) -> CpuSample {
    CpuSample {
        before_handshakes: true,
        ..in_user_mode(process, LIBRARY)
    }
}

/// Whether a sample counts for the start of its process.
fn is_start(scene: &Scene<'_, Two>, sample: &CpuSample) -> bool {
    let mut desk = desk_of(KALLSYMS);
    desk.take(scene, sample);
    let mut bookings = desk.by_service.into_values();
    bookings.next().unwrap().upkeep.contains_key(&Upkeep::Start)
}

#[test]
fn what_comes_before_the_first_handshake_is_the_start_of_a_process() {
    let mut table = table_of_the_server();
    let mark = table.mark();
    table.apply(&fork());
    let scene = scene_of(&table, Some(mark));
    assert!(is_start(&scene, &at_start(CHILD)));
    for (before_handshakes, stack, start) in [
        (true, &[UNKNOWN], true),
        (true, &[CLOSE], false),
        (false, &[UNKNOWN], false),
    ] {
        let sample = CpuSample {
            before_handshakes,
            ..in_kernel(CHILD, stack)
        };
        assert_eq!(is_start(&scene, &sample), start, "{stack:?}");
    }
}

#[test]
fn a_process_from_before_the_profile_may_have_had_its_handshake() {
    let mut table = table_of_the_server();
    let mark = table.mark();
    let is_start =
        |table: &ProcessTable<Two>| is_start(&scene_of(table, Some(mark)), &at_start(SERVER));
    assert!(!is_start(&table));
    table.apply(&ProcessEvent::Exec {
        process: SERVER,
        path: "/usr/sbin/server".into(),
        comm: "server".into(),
        cpu: LifetimeCpu::default(),
    });
    assert!(is_start(&table), "a new program");
}

#[test]
fn no_start_is_told_where_handshakes_may_be_missed_or_there_are_none() {
    let mut table = table_of_the_server();
    let mark = table.mark();
    table.apply(&fork());
    let sample = at_start(CHILD);
    assert!(!is_start(&scene_of(&table, None), &sample), "in windows");
    let after = Some(table.mark());
    assert!(!is_start(&scene_of(&table, after), &sample), "since then");
    for tls in [Tls::Unknown, Tls::Absent] {
        let mut scene = scene_of(&table, Some(mark));
        scene.tls.values_mut().for_each(|known| *known = tls);
        assert!(!is_start(&scene, &sample), "{tls:?}");
    }
}

#[test]
fn code_in_a_file_is_told_from_code_that_a_process_has_made() {
    let table = table_of_the_server();
    assert!(table.is_in_image(SERVER, LIBRARY));
    assert!(!table.is_in_image(SERVER, LIBRARY + 0x1000));
    assert!(table.is_in_image(4711, LIBRARY), "it is not known");
}

/// `aesenc %xmm1, %xmm0` over and over.
const AES_ROUNDS: [u8; 5] = [0x66, 0x0f, 0x38, 0xdc, 0xc1];

#[test]
fn a_cipher_outside_of_a_tls_library_is_noted_as_the_cipher_alone() {
    for (address, alone) in [(LIBRARY, 0), (LIBRARY + 0x1000, 1)] {
        let sample = CpuSample {
            code: AES_ROUNDS.repeat(51),
            at: 125,
            ..in_user_mode(SERVER, address)
        };
        let (booking, _) = booked(InterruptTime::InThread, &[sample]);
        assert_eq!(booking.counts, one(Activity::Encryption, Mode::User));
        assert_eq!(booking.cipher_alone, alone);
    }
}
