//! Socket options that no dependency supports. The only module with `unsafe` code.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

/// A value that the kernel reads directly from memory.
///
/// # Safety
///
/// The type must have the layout that the kernel expects for the options with which it is used, and no uninitialized
/// padding.
#[expect(unsafe_code, reason = "implementors guarantee the memory layout")]
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a C `int`.
#[expect(unsafe_code, reason = "see the trait's safety section")]
unsafe impl Plain for libc::c_int {}

/// Sets an option.
///
/// # Errors
///
/// Returns the error of `setsockopt` if the system does not support the option or rejects the value.
#[expect(unsafe_code, reason = "system call")]
pub(crate) fn set<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer refers to a live value of the given length, the kernel only reads it, and the descriptor is
    // open while it is borrowed.
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

/// Reads an option into a buffer, truncated to its length. Returns the number of bytes written.
///
/// # Errors
///
/// Returns the error of `getsockopt` if the system does not support the option for this socket.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "system call")]
pub(crate) fn get(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut len = buffer.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, which is the length of the buffer, and their number into `len`.
    // All bytes are valid for `[u8]`. The descriptor is open while it is borrowed.
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

/// Attaches the BPF program that selects a socket of a reuseport group.
///
/// # Errors
///
/// Returns the error of `setsockopt` if the system does not support it.
#[cfg(target_os = "linux")]
pub(crate) fn attach_program(
    socket: BorrowedFd<'_>,
    instructions: &mut [libc::sock_filter],
) -> io::Result<()> {
    #[derive(Clone, Copy)]
    struct Program(#[expect(dead_code, reason = "read by the kernel")] libc::sock_fprog);
    // SAFETY: has the layout of `sock_fprog`, whose padding the kernel does not read.
    #[expect(unsafe_code, reason = "see the trait's safety section")]
    unsafe impl Plain for Program {}

    let program = Program(libc::sock_fprog {
        len: instructions.len() as u16,
        filter: instructions.as_mut_ptr(),
    });
    // The kernel copies the instructions during the call, which they outlive.
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_ATTACH_REUSEPORT_CBPF,
        &program,
    )
}
