//! What the code computes that samples of handshakes and encryption hit: looked up in images by a
//! thread beside the session, and booked when its answer has come.

mod calls;
mod images;
mod lookup;
mod maps;
pub(super) mod own_code;

use std::collections::BTreeMap;
use std::time::Duration;

use calls::Calls;
use images::{Images, Place};
use lookup::{Answer, Lookup};
use maps::Maps;
use own_code::Compiled;
use tlsprof_common::Step;
use tlsprof_discover::ProcRoot;
use tlsprof_discover::image::Mapping;
use tlsprof_evidence::activity::{Activity, Mode};
use tlsprof_evidence::cpu::CpuSample;
use tlsprof_evidence::fingerprint::{Cache, Kind, compiled};
use tlsprof_evidence::primitive::{Evidence, Primitive, by_instructions};
use tlsprof_ledger::{Ledger, PrimitiveAccount, Primitives as Counts};

/// Pieces of machine code whose kind is remembered, some 300 bytes each.
const MAX_CODE: usize = 4096;
/// Different spots that wait to be looked up; the code of more is not identified.
const MAX_WAITING: usize = 50_000;
/// Services whose samples wait to be booked; as many as the sample desk has.
const MAX_SERVICES: usize = 1024;
/// Stacks that wait, some kilobytes each; what further samples were called for is not told.
const MAX_STACKS: usize = 4096;
/// How long the end of a profile waits for an answer without a word.
const SOON: Duration = Duration::from_secs(2);
/// How long it waits then: an image of 500 MB takes a second or two, OpenSSL for
/// AArch64 ten on an emulated CPU.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where samples hit user code, or what is known without looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spot {
    /// Kernel code.
    Kernel,
    /// Code that is in no image and in no map, or in none that can be read.
    Code(Kind),
    /// Code of an image, at that offset in the file; of a map, at that address.
    Image(Place, Kind),
}

/// Of a service.
type Key = (String, Activity, Spot);

/// Samples of one time.
#[derive(Debug, Default)]
struct Batch {
    spots: BTreeMap<Key, u64>,
    /// Those with a stack.
    called: Vec<(Key, Calls, u64)>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.spots.is_empty() && self.called.is_empty()
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let places = self.spots.keys().filter_map(|(_, _, spot)| match spot {
            Spot::Image(place, _) => Some(*place),
            _ => None,
        });
        places.chain(self.called.iter().flat_map(|(_, calls, _)| calls.places()))
    }
}

/// Samples of handshakes and encryption, from when they are taken to when they are booked.
#[derive(Debug)]
pub(super) struct Primitives {
    kinds: Cache,
    curves: Compiled,
    images: Images,
    maps: Maps,
    lookup: Lookup,
    /// They wait for an answer. Meanwhile no more is asked: what those have in common with the next would be
    /// looked up twice.
    waiting: Option<Batch>,
    now: Batch,
    known: BTreeMap<String, Counts>,
    /// Samples in images that were counted before an answer.
    not_looked_up: u64,
}

impl Primitives {
    pub(super) fn new() -> Self {
        Self {
            kinds: Cache::new(MAX_CODE),
            curves: Compiled::new(compiled::is_curve),
            images: Images::default(),
            maps: Maps::default(),
            lookup: Lookup::start(),
            waiting: None,
            now: Batch::default(),
            known: BTreeMap::new(),
            not_looked_up: 0,
        }
    }

    /// Samples in images whose functions were not looked up before they were counted.
    pub(super) const fn not_looked_up(&self) -> u64 {
        self.not_looked_up
    }

    /// Takes a sample that was counted so. `mappings`: those of its process.
    pub(super) fn note(
        &mut self,
        service: &str,
        (activity, mode): (Activity, Mode),
        sample: &CpuSample,
        proc: &ProcRoot,
        mappings: &[Mapping],
    ) {
        if mode == Mode::Softirq || !PrimitiveAccount::ACTIVITIES.contains(&activity) {
            return;
        }
        let spot = match sample.kernel_stack.is_empty() {
            true => self.user_spot(sample, proc, mappings),
            false => Spot::Kernel,
        };
        let spot = match spot {
            Spot::Image(_, kind) if self.kept(|batch| batch.spots.len()) >= MAX_WAITING => {
                self.not_looked_up += sample.count;
                Spot::Code(kind)
            }
            spot => spot,
        };
        let key = (service.to_owned(), activity, spot);
        match self.calls(sample, proc, mappings) {
            Some(calls) => self.now.called.push((key, calls, sample.count)),
            None => {
                let count = self.now.spots.entry(key).or_default();
                *count = count.saturating_add(sample.count);
            }
        }
    }

    /// How much of something is kept until it is counted.
    fn kept(&self, of: impl Fn(&Batch) -> usize) -> usize {
        of(&self.now) + self.waiting.as_ref().map_or(0, of)
    }

    /// Who called the code that a sample hit, or that left user mode, as far as its stack was kept.
    fn calls(
        &mut self,
        sample: &CpuSample,
        proc: &ProcRoot,
        mappings: &[Mapping],
    ) -> Option<Calls> {
        let has_room = self.kept(|batch| batch.called.len()) < MAX_STACKS;
        let place = match has_room && !sample.user_stack.words.is_empty() {
            true => self.place(sample.instruction, sample, proc, mappings)?,
            false => return None,
        };
        let instruction = (sample.instruction, place);
        let place = |address| self.place(address, sample, proc, mappings);
        Some(Calls::of(&sample.user_stack, instruction, place))
    }

    fn user_spot(&mut self, sample: &CpuSample, proc: &ProcRoot, mappings: &[Mapping]) -> Spot {
        let kind = match sample.code.is_empty() {
            true => Kind::Other,
            false => self.kinds.classify(&sample.code, sample.at),
        };
        if mapping_at(mappings, sample.instruction).is_none() {
            return self.compiled_spot(sample, kind, proc);
        }
        match self.place(sample.instruction, sample, proc, mappings) {
            Some(place) => Spot::Image(place, kind),
            None => Spot::Code(kind),
        }
    }

    /// Of an address in the code of an image that can be read.
    fn place(
        &mut self,
        address: u64,
        sample: &CpuSample,
        proc: &ProcRoot,
        mappings: &[Mapping],
    ) -> Option<Place> {
        let mapping = mapping_at(mappings, address)?;
        let offset = (address - mapping.start).saturating_add(mapping.file_offset);
        let image = mapping.image();
        let opened = self.images.touch(image, || {
            mapping.open(proc, sample.process).map(|image| image.file)
        });
        opened.then_some(Place { image, offset })
    }

    /// Code that is in no file: where a map names it, or as it shows itself.
    fn compiled_spot(&mut self, sample: &CpuSample, kind: Kind, proc: &ProcRoot) -> Spot {
        let kind = self.compiled(sample, kind, proc);
        let offset = sample.instruction;
        match self.maps.of(sample.process, proc, &mut self.images) {
            Some(image) => Spot::Image(Place { image, offset }, kind),
            None => Spot::Code(kind),
        }
    }

    /// The kind of code that is in no file, by more of it where the sample does not show it.
    fn compiled(&mut self, sample: &CpuSample, kind: Kind, proc: &ProcRoot) -> Kind {
        if sample.code.is_empty() || !matches!(kind, Kind::Copy | Kind::Other) {
            return kind;
        }
        let around = |process, address| proc.memory_around(process, address, compiled::REACH);
        match self.curves.ask(sample, around) {
            true => Kind::PublicKey,
            false => kind,
        }
    }

    /// Books what was looked up, of services that have an account, and asks about the samples that
    /// have come since the last time.
    pub(super) fn book(&mut self, ledger: &mut Ledger, is_alive: impl Fn(&str) -> bool) {
        if let Some(answer) = self.lookup.answer() {
            self.take(answer);
        }
        self.ask();
        self.hand_over(ledger);
        self.known.retain(|service, _| is_alive(service));
        self.images.forget_unused();
        self.maps.turn();
    }

    /// Waits for all answers: no more samples come.
    pub(super) fn await_answers(&mut self) {
        // To the question that was asked, and to the last one.
        for _ in 0..2 {
            self.ask();
            if self.waiting.is_some() {
                let answer = self.lookup.await_answer(SOON).or_else(|| {
                    tracing::warn!(
                        "looking up what the last samples hit takes long: up to {PATIENCE:?} more"
                    );
                    self.lookup.await_answer(PATIENCE)
                });
                self.take(answer.unwrap_or_default());
            }
        }
    }

    fn take(&mut self, answer: Answer) {
        for (image, found) in answer {
            self.images.learn(image, found);
        }
        if let Some(batch) = self.waiting.take() {
            self.count_all(batch);
        }
    }

    /// Asks about what is not known of the newest samples, unless an answer is due.
    fn ask(&mut self) {
        if self.waiting.is_some() || self.now.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.now);
        let unknown = self.images.unknown(batch.places());
        match !unknown.is_empty() && self.lookup.ask(unknown) {
            true => self.waiting = Some(batch),
            false => self.count_all(batch),
        }
    }

    fn count_all(&mut self, batch: Batch) {
        for (key, count) in batch.spots {
            self.count(key, None, count);
        }
        for (key, calls, count) in batch.called {
            let step = calls.step(&self.images);
            self.count(key, step, count);
        }
    }

    fn count(&mut self, (service, activity, spot): Key, step: Option<Step>, count: u64) {
        if self.known.len() >= MAX_SERVICES && !self.known.contains_key(&service) {
            return;
        }
        if matches!(spot, Spot::Image(place, _) if !self.images.is_looked_up(place)) {
            self.not_looked_up += count;
        }
        let (primitive, by) = self.identify(spot);
        let counts = self.known.entry(service).or_default();
        let sum = counts.entry((activity, primitive, by, step)).or_default();
        *sum = sum.saturating_add(count);
    }

    fn identify(&self, spot: Spot) -> (Primitive, Evidence) {
        match spot {
            Spot::Kernel => (Primitive::Kernel, Evidence::Name),
            Spot::Code(kind) => by_instructions(kind),
            Spot::Image(place, kind) => identify(self.images.known(place), kind),
        }
    }

    /// Books what is known by now, of services that have an account.
    pub(super) fn hand_over(&mut self, ledger: &mut Ledger) {
        for (service, counts) in &mut self.known {
            if ledger.service(ledger.booked_name(service)).is_some() {
                tracing::debug!(service, ?counts, "CPU samples by primitive");
                ledger.note_primitives(service, counts);
                counts.clear();
            }
        }
        self.known.retain(|_, counts| !counts.is_empty());
    }
}

/// They are ascending by address, as in the process table.
fn mapping_at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.start <= address);
    let mapping = mappings.get(after.checked_sub(1)?)?;
    (address < mapping.end).then_some(mapping)
}

/// What code computes: by the name of its function, else by the code of all of it, else by the
/// instructions around the sample. A function of another name may have a cipher in it that a compiler put
/// there; copying in it is its own.
fn identify(known: Option<(Primitive, Evidence)>, kind: Kind) -> (Primitive, Evidence) {
    let is_cipher = matches!(kind, Kind::Aes | Kind::ChaCha | Kind::Sha);
    match known {
        Some((Primitive::Other, by)) if matches!(kind, Kind::Copy | Kind::Other) => {
            (Primitive::Other, by)
        }
        Some((Primitive::Other, _)) | None => by_instructions(kind),
        Some((_, Evidence::Instructions)) if is_cipher => by_instructions(kind),
        Some(known) => known,
    }
}

#[cfg(test)]
mod tests;
