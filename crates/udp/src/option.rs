//! Socket options that no library at hand sets: the one place with `unsafe`.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

/// A value that the kernel reads as it stands in memory.
///
/// # Safety
///
/// The type is what the kernel expects for the options it is used with, and has no padding that is not initialised.
#[expect(
    unsafe_code,
    reason = "what the kernel reads is for the types to promise"
)]
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a C `int`.
#[expect(unsafe_code, reason = "see the trait")]
unsafe impl Plain for libc::c_int {}

/// Sets an option.
///
/// # Errors
///
/// The system does not know it, or refuses the value.
#[expect(unsafe_code, reason = "the call is the kernel's")]
pub(crate) fn set<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer is to a live value of the length that is said, the kernel only reads it, and the descriptor is
    // open as long as it is borrowed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads an option into a buffer, as far as it goes. Returns how many bytes the system has written.
///
/// # Errors
///
/// The system does not know it for this socket.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the call is the kernel's")]
pub(crate) fn get(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut len = buffer.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, which the buffer has, and how many into `len`; any bytes are a `[u8]`.
    // The descriptor is open as long as it is borrowed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            buffer.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result == 0 {
        Ok((len as usize).min(buffer.len()))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Gives a group of sockets the program that picks one of them.
///
/// # Errors
///
/// The system does not know it.
#[cfg(target_os = "linux")]
pub(crate) fn attach_program(
    socket: BorrowedFd<'_>,
    instructions: &mut [libc::sock_filter],
) -> io::Result<()> {
    #[derive(Clone, Copy)]
    struct Program(#[expect(dead_code, reason = "the kernel reads it")] libc::sock_fprog);
    // SAFETY: a `sock_fprog`. Its padding is read by nobody.
    #[expect(unsafe_code, reason = "see the trait")]
    unsafe impl Plain for Program {}

    let program = Program(libc::sock_fprog {
        len: instructions.len() as u16,
        filter: instructions.as_mut_ptr(),
    });
    // The instructions outlive the call, in which the kernel copies them.
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_ATTACH_REUSEPORT_CBPF,
        &program,
    )
}
