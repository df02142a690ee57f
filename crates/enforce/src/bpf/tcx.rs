//! Programs at the ingress of an interface that stay without a process (tcx, Linux 6.6), by bpf(2). It
//! takes no libbpf, so that every build can find and remove them.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// Commands of bpf(2), from linux/bpf.h.
const MAP_LOOKUP: libc::c_int = 1;
#[cfg(bpf_programs)]
const PROGRAM_ATTACH: libc::c_int = 8;
const PROGRAM_DETACH: libc::c_int = 9;
const PROGRAM_BY_ID: libc::c_int = 13;
const MAP_BY_ID: libc::c_int = 14;
const OBJECT_INFO: libc::c_int = 15;
const PROGRAM_QUERY: libc::c_int = 16;

const INGRESS: u32 = 46;
#[cfg(bpf_programs)]
const FLAG_REPLACE: u32 = 1 << 2;
#[cfg(bpf_programs)]
const FLAG_BEFORE: u32 = 1 << 3;

/// The most programs at an interface (`BPF_MPROG_MAX`), and the most maps of a program that are looked at.
const MOST: usize = 64;

/// The members of `union bpf_attr` for attaching and detaching.
#[derive(Default)]
#[repr(C)]
struct AttachAttributes {
    interface: u32,
    program: u32,
    kind: u32,
    flags: u32,
    replaced: u32,
    relative: u32,
    revision: u64,
}

#[derive(Default)]
#[repr(C)]
struct QueryAttributes {
    interface: u32,
    kind: u32,
    query_flags: u32,
    attach_flags: u32,
    programs: u64,
    count: u32,
    padding: u32,
    program_flags: u64,
    links: u64,
    link_flags: u64,
    revision: u64,
}

#[derive(Default)]
#[repr(C)]
struct IdAttributes {
    id: u32,
    next: u32,
    flags: u32,
}

#[derive(Default)]
#[repr(C)]
struct InfoAttributes {
    descriptor: u32,
    length: u32,
    info: u64,
}

#[derive(Default)]
#[repr(C)]
struct LookupAttributes {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The first members of `struct bpf_prog_info`.
#[derive(Default)]
#[repr(C)]
struct ProgramInfo {
    unused: [u64; 6],
    uid: u32,
    map_count: u32,
    maps: u64,
    name: [u8; 16],
}

/// The first members of `struct bpf_map_info`.
#[derive(Default)]
#[repr(C)]
struct MapInfo {
    kind: u32,
    id: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    name: [u8; 16],
}

/// Calls bpf(2).
///
/// # Safety
/// The attributes are those of the command, and what they point to is as large as they say.
unsafe fn call<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    let attributes: *mut T = attributes;
    // SAFETY: the attributes are as long as this says; the caller guarantees the rest.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    match libc::c_int::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts a program first at the ingress of an interface, or in another's place. It stays there until it is
/// detached, or the interface is gone.
#[cfg(bpf_programs)]
pub(crate) fn attach(
    interface: u32,
    program: BorrowedFd<'_>,
    replaced: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut attributes = AttachAttributes {
        interface,
        program: number(program),
        kind: INGRESS,
        flags: replaced.map_or(FLAG_BEFORE, |_| FLAG_REPLACE),
        replaced: replaced.map_or(0, number),
        ..AttachAttributes::default()
    };
    // SAFETY: numbers only.
    unsafe { call(PROGRAM_ATTACH, &mut attributes) }.map(drop)
}

/// Removes a program from the ingress of an interface.
pub(crate) fn detach(interface: u32, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = AttachAttributes {
        interface,
        program: number(program),
        kind: INGRESS,
        ..AttachAttributes::default()
    };
    // SAFETY: numbers only.
    unsafe { call(PROGRAM_DETACH, &mut attributes) }.map(drop)
}

/// Returns a program if it has this name. It takes CAP_SYS_ADMIN.
pub(crate) fn open(id: u32, name: &str) -> io::Result<Option<OwnedFd>> {
    let program = match by_id(PROGRAM_BY_ID, id) {
        Ok(program) => program,
        // It was removed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut info = ProgramInfo::default();
    read_info(&program, &mut info)?;
    Ok(is_named(&info.name, name).then_some(program))
}

/// Returns the IDs of the programs at the ingress of an interface that stay without a process: they have no
/// link. It takes CAP_NET_ADMIN.
pub(crate) fn query(interface: u32) -> io::Result<Vec<u32>> {
    let (mut programs, mut links) = ([0_u32; MOST], [0_u32; MOST]);
    let mut attributes = QueryAttributes {
        interface,
        kind: INGRESS,
        programs: address(&mut programs),
        count: MOST as u32,
        links: address(&mut links),
        ..QueryAttributes::default()
    };
    // SAFETY: the arrays have room for as many numbers as `count` says, and live until the call returns.
    unsafe { call(PROGRAM_QUERY, &mut attributes) }?;
    let found = programs
        .into_iter()
        .zip(links)
        .take(attributes.count as usize);
    let without_link = found.filter(|(_, link)| *link == 0);
    Ok(without_link.map(|(program, _)| program).collect())
}

/// Reads the first value of the array map of this name that a program uses, as words; `None` if the program
/// has no such map with values of this size.
pub(crate) fn read_words<const WORDS: usize>(
    program: &OwnedFd,
    name: &str,
) -> io::Result<Option<[u64; WORDS]>> {
    let mut ids = [0_u32; MOST];
    let mut info = ProgramInfo {
        map_count: MOST as u32,
        maps: address(&mut ids),
        ..ProgramInfo::default()
    };
    read_info(program, &mut info)?;
    for id in ids.into_iter().take(info.map_count as usize) {
        let map = by_id(MAP_BY_ID, id)?;
        let mut info = MapInfo::default();
        read_info(&map, &mut info)?;
        if is_named(&info.name, name) && info.value_size as usize == WORDS * size_of::<u64>() {
            return lookup_first(&map).map(Some);
        }
    }
    Ok(None)
}

fn lookup_first<const WORDS: usize>(map: &OwnedFd) -> io::Result<[u64; WORDS]> {
    let (mut key, mut value) = ([0_u32], [0; WORDS]);
    let mut attributes = LookupAttributes {
        map: number_of(map),
        key: address(&mut key),
        value: address(&mut value),
        ..LookupAttributes::default()
    };
    // SAFETY: the key is that of an array; the value has the size that the caller has checked.
    unsafe { call(MAP_LOOKUP, &mut attributes) }?;
    Ok(value)
}

fn by_id(command: libc::c_int, id: u32) -> io::Result<OwnedFd> {
    let mut attributes = IdAttributes {
        id,
        ..IdAttributes::default()
    };
    // SAFETY: numbers only.
    let descriptor = unsafe { call(command, &mut attributes) }?;
    // SAFETY: the descriptor is open, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn read_info<T>(object: &OwnedFd, info: &mut T) -> io::Result<()> {
    let mut attributes = InfoAttributes {
        descriptor: number_of(object),
        length: size_of::<T>() as u32,
        info: std::ptr::from_mut(info) as u64,
    };
    // SAFETY: the kernel writes at most `length` bytes, and as many IDs as `info` has room for.
    unsafe { call(OBJECT_INFO, &mut attributes) }.map(drop)
}

fn is_named(found: &[u8], name: &str) -> bool {
    let end = found.iter().position(|byte| *byte == 0);
    found.get(..end.unwrap_or(found.len())) == Some(name.as_bytes())
}

fn address<T>(items: &mut [T]) -> u64 {
    items.as_mut_ptr() as u64
}

fn number(descriptor: BorrowedFd<'_>) -> u32 {
    descriptor.as_raw_fd().unsigned_abs()
}

fn number_of(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd().unsigned_abs()
}
