//! Which code samples hit, and how it is called.

pub(super) mod readable;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;

use tracing::debug;

use tlsprof_common::causes::one_line;
use tlsprof_common::{ImageId, Pid};
use tlsprof_discover::ProcRoot;
use tlsprof_discover::elf::ElfView;
use tlsprof_discover::image::Mapping;
use tlsprof_discover::perf_map::functions_in;
use tlsprof_evidence::activity::{Activity, Mode, kernel_symbols};
use tlsprof_ledger::{Code, Profile, Spot};
use tlsprof_outlet::flamegraph::Stack;

/// Images that are kept open until their functions are looked up.
const MOST_IMAGES: usize = 512;
/// An image cannot be opened through a process that is gone: then it is tried again
/// through the next ones that were hit in it. A map of compiled code may be written while a
/// profile runs.
const MOST_TRIES: u32 = 20;

/// Samples by the code that they hit. The images stay open: at the end of a profile the
/// processes that map them may be gone.
#[derive(Debug, Default)]
pub(crate) struct Spots {
    profile: Profile,
    images: HashMap<ImageId, Image>,
    maps: HashMap<Pid, Map>,
}

#[derive(Debug, Default)]
struct Image {
    /// Name of the file.
    module: String,
    /// None if it cannot be read.
    names: Option<Names>,
    tries: u32,
}

/// What names functions.
#[derive(Debug)]
enum Names {
    Elf(ElfView),
    /// Of code that a process compiled itself, by address.
    Map(File),
}

/// That of a process.
#[derive(Debug, Default)]
struct Map {
    id: Option<ImageId>,
    tries: u32,
}

impl Spots {
    /// Adds samples of a service.
    pub fn add(&mut self, service: &str, activity: Activity, mode: Mode, code: Code, count: u64) {
        let spot = Spot {
            service: service.to_owned(),
            activity,
            mode,
            code,
        };
        self.profile.add(spot, count);
    }

    /// What is at that address of user space, in a process that maps these images.
    pub(crate) fn code_at(
        &mut self,
        proc: &ProcRoot,
        process: Pid,
        mappings: &[Mapping],
        address: u64,
    ) -> Code {
        let holds = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        let Some(mapping) = mappings.iter().find(holds) else {
            let map = self.map_of(proc, process);
            return map.map_or(Code::Elsewhere, |image| Code::Image {
                image,
                offset: Some(address),
            });
        };
        let image = mapping.image();
        if self.images.len() >= MOST_IMAGES && !self.images.contains_key(&image) {
            return Code::Elsewhere;
        }
        let kept = self.images.entry(image).or_default();
        if kept.names.is_none() && kept.tries < MOST_TRIES {
            kept.open(proc, process, mapping);
        }
        let offset = (address - mapping.start).saturating_add(mapping.file_offset);
        Code::Image {
            image,
            offset: Some(offset),
        }
    }

    /// The map of code that a process compiled itself, if it has written one.
    fn map_of(&mut self, proc: &ProcRoot, process: Pid) -> Option<ImageId> {
        let known = self.maps.entry(process).or_default();
        if known.id.is_none() && known.tries < MOST_TRIES && self.images.len() < MOST_IMAGES {
            known.tries += 1;
            let map = proc.perf_map(process).ok()?;
            known.id = Some(map.id);
            let image = self.images.entry(map.id).or_default();
            image.module = "compiled at run time".to_owned();
            image.names = Some(Names::Map(map.file));
        }
        known.id
    }

    /// All samples by the names of modules and functions.
    pub(crate) fn stacks(&self) -> BTreeMap<Stack, u64> {
        let functions: HashMap<_, _> = self
            .images
            .iter()
            .map(|(id, image)| (*id, image.functions(&self.offsets_in(*id))))
            .collect();
        let kernel = self.kernel_functions();
        let mut stacks = BTreeMap::new();
        for (spot, count) in self.profile.spots() {
            let (module, function) = match &spot.code {
                Code::Kernel(address) => {
                    let name = kernel.get(address).cloned();
                    let function = name.unwrap_or_else(|| format!("{address:#x}"));
                    ("kernel".to_owned(), function)
                }
                Code::Elsewhere => ("no file".to_owned(), String::new()),
                Code::Image { image, offset } => {
                    let named = functions.get(image).zip(*offset);
                    let function = named.and_then(|(named, offset)| named.get(&offset).cloned());
                    let module = self.images.get(image).map(|image| image.module.clone());
                    (module.unwrap_or_default(), function.unwrap_or_default())
                }
            };
            let stack = Stack {
                service: spot.service.clone(),
                activity: spot.activity,
                mode: spot.mode,
                module,
                function,
            };
            *stacks.entry(stack).or_default() += count;
        }
        stacks
    }

    fn kernel_functions(&self) -> HashMap<u64, String> {
        let codes = self.profile.spots().map(|(spot, _)| &spot.code);
        let address = |code: &Code| match code {
            Code::Kernel(address) => Some(*address),
            _ => None,
        };
        let mut addresses: Vec<u64> = codes.filter_map(address).collect();
        addresses.dedup();
        if addresses.is_empty() {
            return HashMap::new();
        }
        kernel_symbols::names(&addresses).unwrap_or_else(|error| {
            debug!(
                error = one_line(&error),
                "functions of the kernel have no names"
            );
            HashMap::new()
        })
    }

    fn offsets_in(&self, id: ImageId) -> Vec<u64> {
        let codes = self.profile.spots().map(|(spot, _)| &spot.code);
        let offset = |code: &Code| match code {
            Code::Image {
                image,
                offset: Some(offset),
            } if *image == id => Some(*offset),
            _ => None,
        };
        let mut offsets: Vec<u64> = codes.filter_map(offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }
}

impl Image {
    fn open(&mut self, proc: &ProcRoot, process: Pid, mapping: &Mapping) {
        let file = mapping.open(proc, process).map_err(|e| one_line(&e));
        let view = file.and_then(|image| ElfView::open(image.file).map_err(|e| one_line(&e)));
        self.module = file_name(&mapping.path);
        self.tries += 1;
        let view =
            view.inspect_err(|error| debug!(error, "functions of an image have no names yet"));
        self.names = view.ok().map(Names::Elf);
    }

    /// Names of the functions at these offsets in the file, or at these addresses.
    fn functions(&self, offsets: &[u64]) -> HashMap<u64, String> {
        match &self.names {
            Some(Names::Elf(view)) => self.in_image(view, offsets),
            Some(Names::Map(map)) => in_map(map, offsets),
            None => HashMap::new(),
        }
    }

    /// From the symbol tables, else by where the function begins, else by the offset alone.
    fn in_image(&self, view: &ElfView, offsets: &[u64]) -> HashMap<u64, String> {
        let at = |offset: &u64| Some((*offset, view.code_address(*offset)?));
        let addresses: Vec<(u64, u64)> = offsets.iter().filter_map(at).collect();
        let wanted: Vec<u64> = addresses.iter().map(|(_, address)| *address).collect();
        let names = view.names_at(&wanted).unwrap_or_else(|error| {
            debug!(error = one_line(&error), module = self.module, "no symbols");
            BTreeMap::new()
        });
        let name = |(offset, address): (u64, u64)| {
            let name = match names.get(&address) {
                Some(name) => readable::readable(name),
                None => {
                    let start = view.function_start(address).ok().flatten();
                    format!("{}+{:#x}", self.module, start.unwrap_or(address))
                }
            };
            (offset, name)
        };
        addresses.into_iter().map(name).collect()
    }
}

fn in_map(map: &File, addresses: &[u64]) -> HashMap<u64, String> {
    let functions = functions_in(map, addresses).unwrap_or_default();
    let name = |address: &u64| {
        let (_, function) = functions.range(..=*address).next_back()?;
        (*address < function.end).then(|| (*address, function.own_name().to_owned()))
    };
    addresses.iter().filter_map(name).collect()
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs;

    use super::*;
    use tlsprof_discover::sample::add_perf_map;

    #[inline(never)]
    fn a_function_to_be_found() -> u32 {
        std::process::id()
    }

    fn names(address: u64) -> (String, String) {
        let (proc, pid) = (ProcRoot::default(), a_function_to_be_found());
        let mappings = proc.images(pid).unwrap().unwrap();
        let mut spots = Spots::default();
        let code = spots.code_at(&proc, pid, &mappings, address);
        spots.add("s", Activity::Application, Mode::User, code, 3);
        let mut stacks = spots.stacks().into_iter();
        let (stack, count) = stacks.next().unwrap();
        assert_eq!((count, stacks.next()), (3, None));
        (stack.module, stack.function)
    }

    #[test]
    fn code_of_this_process_has_its_names() {
        let (module, function) = names(a_function_to_be_found as fn() -> u32 as usize as u64 + 1);
        let own = std::env::current_exe().unwrap();
        assert_eq!(module, file_name(&own));
        assert_eq!(
            function,
            "tlsprof::session::spots::tests::a_function_to_be_found"
        );
    }

    #[test]
    fn exported_functions_of_a_stripped_library_have_their_names() {
        let (module, function) = names(libc::strtoul as *const () as u64 + 1);
        assert_eq!(module, "libc.so.6");
        assert!(
            function.contains("strtoul") || function.contains("strtoull"),
            "{function}"
        );
    }

    #[test]
    fn memory_that_is_no_file_is_told() {
        let on_the_heap = Box::new(7_u64);
        let (module, function) = names(std::ptr::from_ref(&*on_the_heap) as u64);
        assert_eq!((module.as_str(), function.as_str()), ("no file", ""));
    }

    #[test]
    fn compiled_code_has_the_names_of_its_map() {
        let tree = tempfile::tempdir().unwrap();
        let path = add_perf_map(tree.path(), 10, None);
        let proc = ProcRoot::new(tree.path());
        let mut spots = Spots::default();
        assert_eq!(spots.code_at(&proc, 10, &[], 0x1010), Code::Elsewhere);
        fs::write(path, "1000 20 void App.run()\n").unwrap();
        for address in [0x1010, 0x1020] {
            let code = spots.code_at(&proc, 10, &[], address);
            spots.add("s", Activity::Application, Mode::User, code, 1);
        }
        let stacks = spots.stacks().into_keys();
        let functions: Vec<String> = stacks.map(|stack| stack.function).collect();
        assert_eq!(functions, ["", "App.run"]);
    }

    #[test]
    fn places_in_the_kernel_without_a_name_have_their_address() {
        let mut spots = Spots::default();
        spots.add("s", Activity::SocketIo, Mode::System, Code::Kernel(16), 2);
        let stack = Stack {
            service: "s".into(),
            activity: Activity::SocketIo,
            mode: Mode::System,
            module: "kernel".into(),
            function: "0x10".into(),
        };
        assert_eq!(spots.stacks(), BTreeMap::from([(stack, 2)]));
    }
}
