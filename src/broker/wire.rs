//! A connection between worker and broker: whole messages of a bounded length, with descriptors beside them.

use dataspace_proto::broker::{MAX_FDS, MAX_MESSAGE_BYTES, VERSION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags,
    SocketType, connect, recvmsg, sendmsg, shutdown, socket_with, socketpair,
};
use rustix::process::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

/// Room for the descriptors beside a message.
const FDS_BYTES: usize = rustix::cmsg_space!(ScmRights(MAX_FDS));

/// A message, the descriptors beside it, and who sent it.
type Sent<T> = (T, Vec<OwnedFd>, Option<i32>);

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection(OwnedFd);

impl From<OwnedFd> for Connection {
    fn from(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

impl From<Connection> for OwnedFd {
    fn from(connection: Connection) -> Self {
        connection.0
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Connection {
    /// Both ends of a new one.
    pub(crate) fn pair() -> Result<(Self, Self), Errno> {
        let flags = SocketFlags::CLOEXEC;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Self(one), Self(other)))
    }

    /// One to whoever listens at the socket `path`, which may be started for that.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn connect(path: &Path) -> Result<Self, Errno> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
        let connection = Self(socket);
        connection.expect_hello()?;
        connect(&connection.0, &SocketAddrUnix::new(path)?)?;
        Ok(connection)
    }

    /// Has the kernel tell who sends a message (unix(7), `SO_PASSCRED`). To be called before anybody can.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn expect_hello(&self) -> Result<(), Errno> {
        set_socket_passcred(&self.0, true)
    }

    /// Says that there is somebody at this end.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn send_hello(&self) -> Result<(), Errno> {
        self.send(&VERSION, &[])
    }

    /// The process that [said so](Self::send_hello) at the other end, by the kernel's word.
    ///
    /// # Errors
    /// What the kernel said; `PROTO` where nobody did, or of another version.
    pub(crate) fn receive_hello(&self) -> Result<Pid, Errno> {
        let mut bytes = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let got = retry_on_intr(|| {
            recvmsg(&self.0, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        })?;
        let n_bytes = got.bytes;
        let sender = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid),
            _ => None,
        });
        set_socket_passcred(&self.0, false)?;
        let version = postcard::from_bytes::<u32>(&bytes[..n_bytes]).ok();
        sender.filter(|_| version == Some(VERSION)).ok_or(Errno::PROTO)
    }

    /// Ends it, whoever else has this end.
    pub(crate) fn hang_up(&self) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }

    /// Sends `message`, with copies of the descriptors `beside` it.
    ///
    /// # Errors
    /// What the kernel said; `MSGSIZE` for a message that is too long, or has too much beside it.
    pub(crate) fn send(
        &self,
        message: &impl Serialize,
        beside: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        self.send_with(message, beside, SendFlags::NOSIGNAL)
    }

    /// Sends `message`, and does not wait.
    ///
    /// # Errors
    /// As [`Self::send`]; `AGAIN` where the other end does not take what was sent before.
    pub(crate) fn send_now(
        &self,
        message: &impl Serialize,
        beside: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        self.send_with(message, beside, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    /// Puts a question to a worker, who replies to one after the other, and is not waited for here.
    ///
    /// # Errors
    /// As [`Self::send_now`]; `PROTO` where it has said something without being asked.
    pub(crate) fn put(
        &self,
        question: &impl Serialize,
        beside: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        let has_spoken = self.is_ready_within(Duration::ZERO)?;
        // Who is gone is ready, too, and told of here.
        self.send_now(question, beside)?;
        if has_spoken { Err(Errno::PROTO) } else { Ok(()) }
    }

    fn send_with(
        &self,
        message: &impl Serialize,
        beside: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> Result<(), Errno> {
        let bytes = postcard::to_stdvec(message).map_err(|_| Errno::INVAL)?;
        if bytes.len() > MAX_MESSAGE_BYTES || beside.len() > MAX_FDS {
            return Err(Errno::MSGSIZE);
        }
        let mut space = [MaybeUninit::uninit(); FDS_BYTES];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !beside.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(beside)) {
            return Err(Errno::MSGSIZE);
        }
        let slices = [IoSlice::new(&bytes)];
        retry_on_intr(|| sendmsg(&self.0, &slices, &mut ancillary, flags))?;
        Ok(())
    }

    /// Waits for a message, and gives it with what is beside it; `None` where the other end is gone.
    ///
    /// # Errors
    /// What the kernel said; `PROTO` for what is no such message.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> Result<Option<(T, Vec<OwnedFd>)>, Errno> {
        let mut space = [MaybeUninit::uninit(); FDS_BYTES];
        Ok(self.receive_into(&mut space)?.map(|(message, beside, _)| (message, beside)))
    }

    /// The same, of what has nothing beside it: that never becomes ours, the kernel drops it (unix(7), `SCM_RIGHTS`).
    ///
    /// # Errors
    /// As [`Self::receive`]; `PROTO` where anything is beside it.
    pub(crate) fn receive_alone<T: DeserializeOwned>(&self) -> Result<Option<T>, Errno> {
        Ok(self.receive_into(&mut [])?.map(|(message, ..)| message))
    }

    /// The same, of process `sender` only, where the kernel is to tell ([`Self::expect_hello`]): others may have got
    /// the other end.
    ///
    /// # Errors
    /// As [`Self::receive`]; `PERM` for a message of another process, `PROTO` where anything is beside it.
    pub(crate) fn receive_of<T: DeserializeOwned>(&self, sender: i32) -> Result<Option<T>, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        match self.receive_into(&mut space)? {
            Some((_, _, real)) if real != Some(sender) => Err(Errno::PERM),
            Some((message, _, _)) => Ok(Some(message)),
            None => Ok(None),
        }
    }

    /// The same, with the process that sent it, where the kernel tells, and as much beside it as there is `space` for.
    fn receive_into<T: DeserializeOwned>(
        &self,
        space: &mut [MaybeUninit<u8>],
    ) -> Result<Option<Sent<T>>, Errno> {
        let mut bytes = [0; MAX_MESSAGE_BYTES];
        let mut ancillary = RecvAncillaryBuffer::new(space);
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = match retry_on_intr(|| recvmsg(&self.0, &mut slices, &mut ancillary, flags)) {
            Err(Errno::CONNRESET) => return Ok(None),
            got => got?,
        };
        let (mut beside, mut sender) = (Vec::new(), None);
        for message in ancillary.drain() {
            match message {
                RecvAncillaryMessage::ScmRights(fds) => beside.extend(fds),
                RecvAncillaryMessage::ScmCredentials(credentials) => {
                    sender = Some(credentials.pid.as_raw_nonzero().get());
                }
                _ => {}
            }
        }
        // Messages are never empty.
        if got.bytes == 0 {
            return Ok(None);
        }
        if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(Errno::PROTO);
        }
        let message = postcard::from_bytes(&bytes[..got.bytes]).map_err(|_| Errno::PROTO)?;
        Ok(Some((message, beside, sender)))
    }

    /// Sends `message`, and waits for the answer.
    ///
    /// # Errors
    /// As [`Self::send`] and [`Self::receive`]; `PIPE` where the other end is gone.
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        message: &impl Serialize,
    ) -> Result<(T, Vec<OwnedFd>), Errno> {
        self.send(message, &[])?;
        self.receive()?.ok_or(Errno::PIPE)
    }

    /// Tells whether something can be received, or the other end is gone; waits for it for `time`.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn is_ready_within(&self, time: Duration) -> Result<bool, Errno> {
        let time = Timespec::try_from(time).map_err(|_| Errno::INVAL)?;
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut fds, Some(&time)) {
            Err(Errno::INTR) => Ok(false),
            n_ready => Ok(n_ready? != 0),
        }
    }

    /// Sends `message`, and what is `beside` it, which is closed here.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(crate) fn hand_over(
        &self,
        message: &impl Serialize,
        beside: &[OwnedFd],
    ) -> Result<(), Errno> {
        let beside: Vec<_> = beside.iter().map(|fd| fd.as_fd()).collect();
        self.send(message, &beside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::broker::Request;
    use std::io::Read as _;

    #[test]
    fn messages_arrive_whole_with_what_is_beside_them() {
        let (one, other) = Connection::pair().unwrap();
        let request = Request::File { path: b"/proc/cpuinfo".to_vec() };
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"text").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        one.send(&request, &[file.as_fd()]).unwrap();
        let (received, mut beside) = other.receive::<Request>().unwrap().unwrap();
        assert_eq!(received, request);
        let mut text = String::new();
        std::fs::File::from(beside.pop().unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!((&*text, beside.len()), ("text", 0));
        let long = Request::File { path: vec![b'/'; MAX_MESSAGE_BYTES] };
        assert_eq!(one.send(&long, &[]), Err(Errno::MSGSIZE));
        drop(one);
        assert!(other.receive::<Request>().unwrap().is_none(), "the other end is gone");
    }

    #[test]
    fn garbage_is_no_message() {
        let (one, other) = Connection::pair().unwrap();
        for bytes in [&[0xff; 40][..], &[1, 0xff, 0xff, 0xff, 0xff, 0x0f], &[5, 1]] {
            rustix::net::send(&one.0, bytes, SendFlags::empty()).unwrap();
            assert_eq!(other.receive::<Request>().unwrap_err(), Errno::PROTO, "{bytes:?}");
        }
        let fds = [one.0.as_fd(); 2 * MAX_FDS];
        assert_eq!(one.send(&1, &fds), Err(Errno::MSGSIZE));
    }
}
