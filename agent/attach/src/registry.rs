//! The images that are profiled: one attachment per image, released when its
//! last process is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::danger::Danger;
use super::error::InspectError;
use super::plan::{Plan, PlanError, Site, plan};
use tlsprof_common::ImageId;
use tlsprof_common::causes::one_line;
use tlsprof_discover::elf::{ElfError, ElfView};
use tlsprof_discover::image::{Mapping, OpenImage};
use tlsprof_discover::library::{Tls, detect};
use tlsprof_kernel::cookies::Point;
use tlsprof_kernel::error::Unavailable;
use tlsprof_kernel::loaded::Loaded;
use tlsprof_kernel::probes::{AttachError, Links, release_all};
use tlsprof_library::spec::{Group, Program};
use tlsprof_library::{Found, Unsupported};

/// Why an image with a TLS library is not profiled.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// It only looks like a library that can be probed.
    #[error("{0}")]
    Unsupported(#[from] Unsupported),
    /// Probe sites could not be found.
    #[error("{}", one_line(.0))]
    Plan(#[from] PlanError),
    /// The kernel refused the probes.
    #[error("{}", one_line(.0))]
    Attach(#[from] AttachError),
    /// The user wants no probes in libraries.
    #[error("switched off by profile.library")]
    SwitchedOff,
    /// The kernel refused the programs.
    #[error("{0}")]
    Kernel(Arc<Unavailable>),
    /// Return probes would harm one of the processes that map it.
    #[error("{0}")]
    Danger(Danger),
}

/// Whether an image is profiled.
#[derive(Debug)]
pub enum State {
    /// Probes are attached.
    Profiled,
    /// It has a TLS library, but no probes.
    NotProfiled(Reason),
    /// It was found for a list; nothing is attached.
    Found,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profiled => write!(f, "profiled"),
            Self::NotProfiled(reason) => write!(f, "not profiled: {reason}"),
            Self::Found => write!(f, "can be profiled"),
        }
    }
}

/// An image that holds a TLS library.
#[derive(Debug)]
pub struct Image {
    /// Path as the process sees it through which it was found.
    pub path: PathBuf,
    /// Build id in hexadecimal, empty if there is none.
    pub build_id: String,
    /// What is in it; None for a library that cannot be profiled.
    pub library: Option<Found>,
    /// Probe sites; None where there is no plan.
    pub plan: Option<Plan>,
    /// Whether it is profiled.
    pub state: State,
    /// Kept open: the way to this very file, whatever becomes of its path.
    file: OpenImage,
    links: BTreeMap<Group, Links>,
}

/// What is in an image.
#[derive(Debug)]
pub struct Inspected {
    /// Whether it may switch stacks in a handshake, for
    /// [`Dangers::note`](super::danger::Dangers::note).
    pub switches_stacks: bool,
    image: Option<Image>,
}

/// Examines an image that is mapped so. One of hundreds of megabytes takes seconds.
///
/// # Errors
///
/// [`InspectError`]: the image stays unknown.
pub fn inspect(file: OpenImage, mapping: &Mapping) -> Result<Inspected, InspectError> {
    let view = match file
        .file
        .try_clone()
        .map_err(InspectError::Duplicate)
        .map(ElfView::open)?
    {
        Ok(view) => view,
        Err(ElfError::NotElf) => {
            return Ok(Inspected {
                switches_stacks: false,
                image: None,
            });
        }
        Err(error) => return Err(error.into()),
    };
    let detection = detect(&view)?;
    let found = match detection.tls {
        Tls::None => None,
        Tls::Unsupported(kind) => Some((None, None, State::NotProfiled(kind.into()))),
        Tls::Supported(found) => Some(match plan(&view, &found) {
            Ok(plan) => (Some(found), Some(plan), State::Found),
            Err(error) => (Some(found), None, State::NotProfiled(error.into())),
        }),
    };
    let image = found.map(|(library, plan, state)| Image {
        path: mapping.path.clone(),
        build_id: view.build_id().unwrap_or_default().to_owned(),
        library,
        plan,
        state,
        file,
        links: BTreeMap::new(),
    });
    Ok(Inspected {
        switches_stacks: detection.switches_stacks,
        image,
    })
}

/// All images with TLS libraries.
#[derive(Debug)]
pub struct Registry {
    images: BTreeMap<ImageId, Image>,
    /// Groups that images get when they are attached.
    groups: BTreeSet<Group>,
    /// Probes of errors everywhere, some images want them.
    all_errors: bool,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// No images yet. They will get the probes of handshakes; other groups when
    /// [`set_attached`](Self::set_attached) says so.
    pub fn new() -> Self {
        Self {
            images: BTreeMap::new(),
            groups: BTreeSet::from([Group::Handshakes]),
            all_errors: false,
        }
    }

    /// Keeps an image that was looked into, if it has a TLS library; nothing is attached yet.
    pub fn keep(&mut self, id: ImageId, inspected: Inspected) {
        if let Some(image) = inspected.image {
            self.images.insert(id, image);
        }
    }

    /// Attaches the probes of all images that were found, libcrypto before
    /// libssl: a handshake must not begin before its steps can be seen. Those on hold have to
    /// wait.
    pub fn attach_found(&mut self, loaded: &mut Loaded, on_hold: &BTreeSet<ImageId>) {
        let found = self
            .images
            .iter()
            .filter(|(id, image)| matches!(image.state, State::Found) && !on_hold.contains(id));
        let lacks_imports = |image: &Image| image.plan.as_ref().is_some_and(Plan::lacks_imports);
        let all_errors = found.clone().any(|(_, image)| lacks_imports(image));
        let mut order: Vec<(bool, ImageId)> = found
            .map(|(id, image)| {
                (
                    image
                        .library
                        .as_ref()
                        .is_some_and(|library| library.handshakes),
                    *id,
                )
            })
            .collect();
        order.sort_unstable();
        self.all_errors |= all_errors;
        if all_errors && self.is_probing() {
            self.set_attached(loaded, Group::AllErrors, true);
        }
        for (_, id) in order {
            let Some(image) = self.images.get_mut(&id) else {
                continue;
            };
            image.state = match image.attach_all(loaded, &self.groups) {
                Ok(()) => {
                    tracing::debug!(path = %image.path.display(), "probes attached");
                    State::Profiled
                }
                Err(error) => State::NotProfiled(error.into()),
            };
        }
    }

    /// The image must have no probes, or none any more. That holds for as long as
    /// it is in use: a program that was there once is likely to come again, and
    /// its first handshake might be over before it is noticed. True if it had some: they would
    /// have shown the ends of the calls that its processes are in, which are then to be
    /// [forgotten](Loaded::forget_calls).
    pub fn refuse(&mut self, id: ImageId, danger: Danger) -> bool {
        let Some(image) = self.images.get_mut(&id) else {
            return false;
        };
        let was_profiled = matches!(image.state, State::Profiled);
        image.links.clear();
        tracing::warn!(path = %image.path.display(), "not profiled: {danger}");
        image.state = State::NotProfiled(Reason::Danger(danger));
        was_profiled
    }

    /// Images that were found, and will have probes if nothing speaks against it.
    pub fn found(&self) -> BTreeSet<ImageId> {
        self.in_state(|state| matches!(state, State::Found))
    }

    /// Images that have probes, or will have them.
    pub fn probed(&self) -> BTreeSet<ImageId> {
        self.in_state(|state| matches!(state, State::Found | State::Profiled))
    }

    fn in_state(&self, wanted: impl Fn(&State) -> bool) -> BTreeSet<ImageId> {
        let images = self.images.iter();
        let those = images.filter(|(_, image)| wanted(&image.state));
        those.map(|(id, _)| *id).collect()
    }

    /// No process maps the image any more: takes its probes out and forgets it.
    pub fn lost(&mut self, id: ImageId) {
        self.images.remove(&id);
    }

    /// Leaves all images that were found without probes.
    pub fn leave_out(&mut self, reason: impl Fn() -> Reason) {
        let images = self.images.values_mut();
        for image in images.filter(|image| matches!(image.state, State::Found)) {
            image.state = State::NotProfiled(reason());
        }
    }

    /// An image that holds a TLS library.
    pub fn get(&self, id: ImageId) -> Option<&Image> {
        self.images.get(&id)
    }

    /// Whether an image does the steps of handshakes and has no probes: what is
    /// seen of handshakes in its processes says nothing of steps.
    pub fn hides_steps(&self, id: ImageId) -> bool {
        self.get(id).is_some_and(|image| {
            let steps = image.library.as_ref().is_some_and(|library| library.steps);
            steps && !matches!(image.state, State::Profiled)
        })
    }

    /// Whether an image has probes.
    pub fn is_profiled(&self, id: ImageId) -> bool {
        self.is_probing()
            && self
                .get(id)
                .is_some_and(|image| matches!(image.state, State::Profiled))
    }

    /// Whether handshakes in libraries are probed at all.
    pub fn is_probing(&self) -> bool {
        self.groups.contains(&Group::Handshakes)
    }

    /// Takes the probes of handshakes out of all images, with the handshakes that are under way,
    /// or puts them back. Those of steps have a duty of their own.
    pub fn set_probed(&mut self, loaded: &mut Loaded, probed: bool) {
        if self.all_errors {
            self.set_attached(loaded, Group::AllErrors, probed);
        }
        self.set_attached(loaded, Group::Handshakes, probed);
        if !probed {
            loaded.forget_calls(|_| true);
        }
    }

    /// How many images are profiled.
    pub fn profiled(&self) -> usize {
        self.images
            .values()
            .filter(|image| matches!(image.state, State::Profiled))
            .count()
    }

    /// Attaches a group of probes to all profiled images, and to those to come, or
    /// releases it.
    pub fn set_attached(&mut self, loaded: &mut Loaded, group: Group, attached: bool) {
        if attached && self.groups.insert(group) {
            self.attach_to_profiled(loaded, group);
        } else if !attached && self.groups.remove(&group) {
            let images = self.images.values_mut();
            release_all(images.filter_map(|image| image.links.remove(&group)));
        }
    }

    /// Takes all probes out, at the end of a profile.
    pub fn release(&mut self) {
        let images = self.images.values_mut();
        release_all(images.flat_map(|image| std::mem::take(&mut image.links).into_values()));
    }

    fn attach_to_profiled(&mut self, loaded: &mut Loaded, group: Group) {
        let images = self.images.values_mut();
        for image in images.filter(|image| matches!(image.state, State::Profiled)) {
            if let Err(error) = image.attach(loaded, group) {
                let error = one_line(&error);
                tracing::warn!(path = %image.path.display(), ?group, error, "probes are missing");
            }
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.release();
    }
}

impl Image {
    /// All of the wanted groups, steps before handshakes, or nothing.
    fn attach_all(
        &mut self,
        loaded: &mut Loaded,
        wanted: &BTreeSet<Group>,
    ) -> Result<(), AttachError> {
        for group in wanted {
            if let Err(error) = self.attach(loaded, *group) {
                self.links.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Attaches one group, all of it or nothing.
    fn attach(&mut self, loaded: &mut Loaded, group: Group) -> Result<(), AttachError> {
        let Some(plan) = &self.plan else {
            return Ok(());
        };
        let path = self.file.path();
        let mut links = Links::default();
        for (program, points) in points(&plan.sites, group) {
            links.merge(loaded.attach(program.function_name(), &path, &points)?);
        }
        self.links.insert(group, links);
        Ok(())
    }
}

/// The points of each program of a group, in the order in which they must be
/// attached: what closes a bracket before what opens it.
pub(crate) fn points(sites: &[Site], group: Group) -> BTreeMap<Program, Vec<Point>> {
    let mut points: BTreeMap<Program, Vec<Point>> = BTreeMap::new();
    for site in sites.iter().filter(|site| site.function.group == group) {
        let programs = [site.function.exit, site.function.entry];
        for program in programs.into_iter().flatten() {
            let point = Point {
                file_offset: site.file_offset,
                cookie: site.function.cookie,
                single_stepped: !site.placement.emulated,
            };
            points.entry(program).or_default().push(point);
        }
    }
    points
}

#[cfg(test)]
mod tests;
