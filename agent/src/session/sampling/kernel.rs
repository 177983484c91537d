//! The kernel's functions, read again when modules come and go: `tls` is loaded when a program first asks for it.

use std::thread::{self, JoinHandle};

use tlsprof_common::causes::one_line;
use tlsprof_evidence::activity::KernelWork;
use tlsprof_evidence::activity::kernel_symbols::{KernelFunctions, Modules};

type Functions = Result<KernelFunctions, String>;

/// What is read of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) modules: fn() -> Option<Modules>,
    pub(super) functions: fn() -> Functions,
}

const RUNNING: Source = Source {
    modules: Modules::read,
    functions: || KernelFunctions::read().map_err(|error| one_line(&error)),
};

/// What the kernel's functions mean.
#[derive(Debug)]
pub(in crate::session) struct Kernel {
    functions: Functions,
    /// When they were read.
    modules: Option<Modules>,
    source: Source,
    /// A thread that reads them again, which takes 0.1 s.
    reading: Option<JoinHandle<Functions>>,
}

impl Kernel {
    /// Reads those of the running kernel.
    pub(in crate::session) fn read() -> Self {
        // In this order: what is loaded in between is noticed later.
        let modules = Modules::read();
        Self::known((RUNNING.functions)(), modules, RUNNING)
    }

    /// Not read yet.
    pub(super) fn unread() -> Self {
        Self::known(Err("not read yet".to_owned()), None, RUNNING)
    }

    pub(super) const fn known(
        functions: Functions,
        modules: Option<Modules>,
        source: Source,
    ) -> Self {
        Self {
            functions,
            modules,
            source,
            reading: None,
        }
    }

    /// What a kernel stack is at work on.
    pub(super) fn work(&self, stack: &[u64]) -> KernelWork {
        match &self.functions {
            Ok(functions) => functions.work(stack),
            Err(_) => KernelWork::of([]),
        }
    }

    /// Why that is not known.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.functions.as_ref().err().map(String::as_str)
    }

    /// Has the functions read again if other modules are loaded than then.
    pub(super) fn compare_modules(&mut self) {
        let modules = (self.source.modules)();
        if self.reading.is_some() || modules == self.modules {
            return;
        }
        let thread = thread::Builder::new().name("tlsprof-kernel".to_owned());
        match thread.spawn(self.source.functions) {
            Ok(reading) => (self.modules, self.reading) = (modules, Some(reading)),
            Err(error) => tracing::warn!(%error, "functions of new kernel modules are not known"),
        }
    }

    /// Takes what was read again. Where that failed, those of before are better than none.
    pub(super) fn learn(&mut self) {
        let Some(reading) = self.reading.take_if(|reading| reading.is_finished()) else {
            return;
        };
        match reading.join() {
            Ok(Ok(functions)) => self.functions = Ok(functions),
            Ok(Err(error)) => {
                tracing::warn!(error, "functions of new kernel modules are not known");
                self.modules = None;
            }
            Err(_) => tracing::warn!("reading the functions of new kernel modules panicked"),
        }
    }
}
