//! Finds the two functions of libssl in which every handshake runs.
//!
//! `ossl_statem_accept(SSL *)` and `ossl_statem_connect(SSL *)` are called for an
//! explicit `SSL_do_handshake`, `SSL_accept` or `SSL_connect`, and for a
//! handshake that `SSL_read` or `SSL_write` drives. They are not exported, but
//! each is the value of a member of `SSL_METHOD` (`ssl_accept`, `ssl_connect`),
//! and exported functions return three tables of that type: for both roles,
//! for servers, and for clients, where the member of the other role is
//! `ssl_undefined_function`. Comparing the tables shows which members they are,
//! without knowing the layout.

mod aarch64;

use std::collections::BTreeSet;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use tlsprof_common::Role;
use tlsprof_discover::elf::{Arch, ElfError, ElfView, Symbols};

/// Names of the functions, for images that have a full symbol table.
const ACCEPT: &str = "ossl_statem_accept";
const CONNECT: &str = "ossl_statem_connect";
/// Functions that return the method tables, in the order of [`Tables`].
const METHODS: [&str; 3] = ["TLS_method", "TLS_server_method", "TLS_client_method"];
/// Words of a table that are compared: `ssl_accept` and `ssl_connect` are
/// members 5 to 9 in 1.1.1 to 3.6; the shortest table has 28.
const WORDS: u64 = 24;
const WORD_BYTES: u64 = 8;
/// `endbr64`, load of an address, `ret`: 12 bytes. On AArch64 a landing pad, `adrp`, two additions
/// and `ret`: 20.
const METHOD_CODE: u64 = 20;

/// Names that [`find`] looks up.
pub(crate) const SYMBOLS: [&str; 5] = [ACCEPT, CONNECT, METHODS[0], METHODS[1], METHODS[2]];

/// The functions of a libssl that run handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateMachine {
    /// Address of `ossl_statem_accept`.
    pub(crate) accept: u64,
    /// Address of `ossl_statem_connect`.
    pub(crate) connect: u64,
    /// How they were found.
    pub origin: Origin,
}

impl StateMachine {
    /// Address of the function that runs the handshakes of a role.
    pub fn address(&self, role: Role) -> u64 {
        match role {
            Role::Server => self.accept,
            Role::Client => self.connect,
        }
    }
}

/// How the functions were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By their names.
    Symbols,
    /// By comparing the method tables.
    MethodTables,
}

/// Why the functions could not be found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateMachineError {
    /// The image could not be read.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// A function that should return a method table is not there.
    #[error("{0} is not defined")]
    Missing(&'static str),
    /// It does something else than to return an address.
    #[error("{0} does not simply return the address of a table")]
    NotATable(&'static str),
    /// The tables do not differ in the expected way.
    #[error(
        "{0} pairs of members differ between the method tables as accept and connect do, not one"
    )]
    Pairs(usize),
    /// Only code of x86-64 and AArch64 can be read.
    #[error("the code of this processor ({0:?}) cannot be read")]
    Architecture(Arch),
}

/// The members of the three method tables; None where one is no pointer.
#[derive(Debug)]
struct Tables {
    any: Vec<Option<u64>>,
    server: Vec<Option<u64>>,
    client: Vec<Option<u64>>,
}

/// Finds the functions. `symbols` must have been asked for [`SYMBOLS`].
///
/// # Errors
/// See [`StateMachineError`].
pub(crate) fn find(image: &ElfView, symbols: &Symbols) -> Result<StateMachine, StateMachineError> {
    if let (Some(accept), Some(connect)) = (symbols.get(ACCEPT), symbols.get(CONNECT)) {
        return Ok(StateMachine {
            accept: accept.address,
            connect: connect.address,
            origin: Origin::Symbols,
        });
    }
    let tables = read_tables(image, symbols)?;
    let (accept, connect) = tables.accept_and_connect(|address| image.is_executable(address))?;
    Ok(StateMachine {
        accept,
        connect,
        origin: Origin::MethodTables,
    })
}

fn read_tables(image: &ElfView, symbols: &Symbols) -> Result<Tables, StateMachineError> {
    let [any, server, client] = METHODS.map(|name| table_address(image, symbols, name));
    let bases = [any?, server?, client?];
    let slots = |base: u64| (0..WORDS).map(move |word| base.saturating_add(word * WORD_BYTES));
    let wanted: BTreeSet<u64> = bases.into_iter().flat_map(slots).collect();
    let values = image.pointers(&wanted)?;
    let [any, server, client] =
        bases.map(|base| slots(base).map(|slot| values.get(&slot).copied()).collect());
    Ok(Tables {
        any,
        server,
        client,
    })
}

impl Tables {
    /// The one pair of members i, j where the table for both roles agrees with
    /// the server's in i and with the client's in j, each table of one role
    /// differs in the other member, and both have the same function there.
    fn accept_and_connect(
        &self,
        is_code: impl Fn(u64) -> bool,
    ) -> Result<(u64, u64), StateMachineError> {
        let members: Vec<(u64, u64, u64)> = self
            .any
            .iter()
            .zip(&self.server)
            .zip(&self.client)
            .filter_map(|((any, server), client)| Some(((*any)?, (*server)?, (*client)?)))
            .filter(|(any, server, client)| [*any, *server, *client].into_iter().all(&is_code))
            .collect();
        let accept = members.iter().filter(|(a, s, c)| a == s && a != c);
        let mut pairs = accept.flat_map(|(accept, _, undefined)| {
            let connect = members.iter().filter(|(a, s, c)| a == c && a != s);
            let connect = connect.filter(move |(_, s, _)| s == undefined);
            connect.map(move |(connect, _, _)| (*accept, *connect))
        });
        match (pairs.next(), pairs.count()) {
            (Some(pair), 0) => Ok(pair),
            (first, others) => Err(StateMachineError::Pairs(
                others + usize::from(first.is_some()),
            )),
        }
    }
}

fn table_address(
    image: &ElfView,
    symbols: &Symbols,
    name: &'static str,
) -> Result<u64, StateMachineError> {
    let returned = match image.arch() {
        Arch::X86_64 => returned_address,
        Arch::Aarch64 => aarch64::returned_address,
        other @ Arch::Other(_) => return Err(StateMachineError::Architecture(other)),
    };
    let function = symbols.get(name).ok_or(StateMachineError::Missing(name))?;
    let code = image.code(function.address, METHOD_CODE)?;
    returned(&code, function.address).ok_or(StateMachineError::NotATable(name))
}

/// The constant address that a function returns, when it does nothing else:
/// `lea table(%rip),%rax; ret`, or `mov $table,%eax; ret` at a fixed address.
fn returned_address(code: &[u8], address: u64) -> Option<u64> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut next = || decoder.can_decode().then(|| decoder.decode());
    let mut load = next()?;
    if load.code() == Code::Endbr64 {
        load = next()?;
    }
    let value = loaded_address(&load)?;
    (next()?.mnemonic() == Mnemonic::Ret).then_some(value)
}

fn loaded_address(load: &Instruction) -> Option<u64> {
    let target = load.op0_register().full_register();
    if load.op0_kind() != OpKind::Register || target != Register::RAX {
        return None;
    }
    match load.code() {
        Code::Lea_r64_m if load.is_ip_rel_memory_operand() => Some(load.ip_rel_memory_address()),
        // Writing a 32-bit register clears the upper half.
        Code::Mov_r32_imm32 => Some(load.immediate(1)),
        Code::Mov_rm64_imm32 | Code::Mov_r64_imm64 => Some(load.immediate(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
