//! What is known of the functions of images.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;

use super::lookup::{Extent, Found, Site, Unknown};
use tlsprof_common::causes::one_line;
use tlsprof_common::{ImageId, Step};
use tlsprof_discover::image::OpenError;
use tlsprof_evidence::primitive::{Evidence, Primitive};

/// Images that are kept open. The kernel does not give their inode numbers to other files
/// meanwhile.
const MAX_IMAGES: usize = 64;
/// Functions of an image that are remembered.
const MAX_FUNCTIONS: usize = 8192;
/// Places of an image that are remembered.
const MAX_SITES: usize = 32_768;
/// So many functions may lie within another one, or in a gap, before the place that is looked for.
const NESTED: usize = 64;
/// An image that was not hit for so many bookings, one a second, is closed: its file may have been
/// removed, and takes up space until then.
const UNUSED: u64 = 600;
/// Bookings until an image is tried again that could not be opened.
const AGAIN: u64 = 5;
/// The same where the process is gone: the next that maps the image may be there.
const SOON: u64 = 1;
/// Images that could not be opened and are remembered.
const MAX_FAILED: usize = 4096;

/// A byte of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) image: ImageId,
    /// In the file.
    pub(super) offset: u64,
}

#[derive(Debug)]
struct Image {
    file: File,
    /// It is a map of code that a process compiled itself: offsets are addresses.
    is_map: bool,
    hit: u64,
    /// By their beginning.
    functions: BTreeMap<u64, Extent>,
    sites: HashMap<u64, Site>,
    /// They hold what a look at all functions found.
    surveyed: bool,
}

/// Images that were hit.
#[derive(Debug, Default)]
pub(super) struct Images {
    images: HashMap<ImageId, Image>,
    /// Those that could not be opened, and when they are tried again.
    failed: HashMap<ImageId, u64>,
    now: u64,
}

impl Images {
    /// Notes that an image was hit, and opens it the first time. False if that fails, or has failed lately: a stack
    /// may hold hundreds of addresses in one image.
    pub(super) fn touch(
        &mut self,
        id: ImageId,
        open: impl FnOnce() -> Result<File, OpenError>,
    ) -> bool {
        if self.hit(id) {
            return true;
        }
        if self.images.len() >= MAX_IMAGES || self.failed.contains_key(&id) {
            return false;
        }
        match open() {
            Ok(file) => {
                self.insert(id, file, false);
                true
            }
            Err(error) => {
                tracing::debug!(error = one_line(&error), "an image cannot be opened");
                let is_gone = matches!(error, OpenError::Gone { .. });
                let after = if is_gone { SOON } else { AGAIN };
                if self.failed.len() >= MAX_FAILED {
                    self.failed.clear();
                }
                self.failed.insert(id, self.now + after);
                false
            }
        }
    }

    /// Notes that an image was hit. False if it is not known.
    pub(super) fn hit(&mut self, id: ImageId) -> bool {
        let image = self.images.get_mut(&id);
        image.map(|image| image.hit = self.now).is_some()
    }

    /// Takes a map of code that a process compiled itself, in place of what was known by it.
    pub(super) fn replace_by_map(&mut self, id: ImageId, file: File) {
        if self.images.len() < MAX_IMAGES || self.images.contains_key(&id) {
            self.insert(id, file, true);
        }
    }

    fn insert(&mut self, id: ImageId, file: File, is_map: bool) {
        let image = Image {
            file,
            is_map,
            hit: self.now,
            functions: BTreeMap::new(),
            sites: HashMap::new(),
            surveyed: false,
        };
        self.images.insert(id, image);
    }

    /// Those of the places that were not looked at, or whose function is not known, by image. To analyse a
    /// function takes much longer than to look at a place in it.
    pub(super) fn unknown(&self, places: impl Iterator<Item = Place>) -> Vec<Unknown> {
        let mut unknown: BTreeMap<ImageId, [BTreeSet<u64>; 2]> = BTreeMap::new();
        for place in places {
            let wanted = [self.extent(place).is_none(), self.site(place).is_none()];
            if wanted != [false; 2] {
                let offsets = unknown.entry(place.image).or_default();
                for (offsets, _) in offsets.iter_mut().zip(wanted).filter(|(_, is)| *is) {
                    offsets.insert(place.offset);
                }
            }
        }
        let unknown = unknown.into_iter().filter_map(|(image, offsets)| {
            let known = self.images.get(&image)?;
            let [functions, sites] = offsets.map(|offsets| offsets.into_iter().collect());
            Some(Unknown {
                image,
                file: known.file.try_clone().ok()?,
                is_map: known.is_map,
                functions,
                sites,
                surveyed: known.surveyed,
            })
        });
        unknown.collect()
    }

    pub(super) fn learn(&mut self, id: ImageId, found: Found) {
        let Some(image) = self.images.get_mut(&id) else {
            return;
        };
        let Found {
            extents,
            sites,
            surveyed,
        } = found;
        if image.sites.len() + sites.len() > MAX_SITES {
            image.sites.clear();
        }
        image.sites.extend(sites);
        if image.functions.len() + extents.len() > MAX_FUNCTIONS {
            image.functions.clear();
            image.surveyed = false;
        }
        image.surveyed |= surveyed;
        let (identified, others): (Vec<Extent>, Vec<Extent>) = extents
            .into_iter()
            .partition(|extent| extent.primitive.is_some());
        for extent in others {
            image.functions.entry(extent.start).or_insert(extent);
        }
        for extent in identified {
            let known = image.functions.get(&extent.start);
            let is_known = known.is_some_and(|known| known.primitive.is_some());
            // It may be asked for again, for another place in it. By its own code alone it is less than by all.
            if is_known && !surveyed {
                continue;
            }
            // A look at all functions finds more than one at this function, or at places in it, alone.
            let inside = image.functions.range(extent.start..extent.end);
            let inside = inside.filter(|(_, known)| known.primitive.is_none());
            let inside: Vec<u64> = inside.map(|(start, _)| *start).collect();
            for start in inside {
                image.functions.remove(&start);
            }
            image.functions.insert(extent.start, extent);
        }
    }

    /// Whether there was an answer about the place.
    pub(super) fn is_looked_up(&self, place: Place) -> bool {
        self.extent(place).is_some()
    }

    /// What the function computes that a place is in, and how that is known.
    pub(super) fn known(&self, place: Place) -> Option<(Primitive, Evidence)> {
        self.extent(place)?.primitive
    }

    /// What the function is called for that a place is in.
    pub(super) fn step(&self, place: Place) -> Option<Step> {
        self.extent(place)?.step
    }

    /// The same, or else what it calls there, for the place of a call. What was called may have ended in a jump to another
    /// function.
    pub(super) fn step_of_call(&self, place: Place) -> Option<Step> {
        self.step(place).or_else(|| self.site(place)?.step)
    }

    /// What is known of the place alone.
    pub(super) fn site(&self, place: Place) -> Option<Site> {
        self.images
            .get(&place.image)?
            .sites
            .get(&place.offset)
            .copied()
    }

    /// Whether the function begins there that a place is in.
    pub(super) fn begins(&self, offset: u64, place: Place) -> bool {
        let extent = self.extent(place);
        extent.is_some_and(|extent| (extent.start..extent.end).contains(&offset))
    }

    fn extent(&self, place: Place) -> Option<Extent> {
        let functions = &self.images.get(&place.image)?.functions;
        let before = functions.range(..=place.offset).rev().take(NESTED);
        let mut before = before.map(|(_, extent)| *extent);
        before.find(|extent| place.offset < extent.end)
    }

    /// Closes images that have not been hit for long, and has some tried again that could not be opened. To be called
    /// once for each booking.
    pub(super) fn forget_unused(&mut self) {
        self.now += 1;
        let now = self.now;
        self.images.retain(|_, image| now - image.hit < UNUSED);
        self.failed.retain(|_, again| now < *again);
    }
}
