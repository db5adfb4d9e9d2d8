//! The shared memory itself: made by the server, opened by an engine, and cut into its parts.

use crate::area::Area;
use crate::doorbell::Doorbell;
use crate::layout::{
    Geometry, GeometryError, Header, IoControl, Layout, MAGIC, PoolControl, ProcessControl, SLOT_HEAD,
    Scheduling, SlotControl, ThreadControl, ThreadState, fifo_capacity,
};
use crate::pool::Pool;
use crate::slot::Token;
use crate::sync::Ordering;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use std::io;
use std::ptr::NonNull;
use std::time::Duration;

/// Why the memory could not be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    #[error("the shared memory could not be {step}: {source}")]
    System { step: &'static str, source: io::Error },
    #[error(
        "this is not the shared memory of this version of Regent: server and engine must be of the same build"
    )]
    Version,
    #[error("the shared memory has {actual} bytes where its geometry asks for {expected}")]
    Size { expected: usize, actual: u64 },
}

/// The mapped memory of one engine. Dropped with its last user; the kernel keeps it as long as a process maps it.
pub struct Region {
    start: NonNull<u8>,
    layout: Layout,
    file: OwnedFd,
}

/// What is known of a thread. All of it comes from the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadView {
    pub state: ThreadState,
    /// When it came to this state, by [`crate::clock::now`].
    pub since: Duration,
    /// Of the kernel, or 0.
    pub tid: u32,
    /// What it runs, while it is busy. The slot counts over all I/O threads.
    pub token: Token,
    /// Requests that it has taken.
    pub requests: u64,
    /// Time that it spent on the requests that have ended.
    pub busy: Duration,
    /// Starts of its script after the first.
    pub restarts: u64,
    /// Bytes that its last request took at most.
    pub memory: u64,
}

/// What an engine says of its life. All of it comes from the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// Of the thread that answers beats, by the kernel's number; 0 until there is one.
    pub tid: u32,
    /// The last beat that was answered.
    pub number: u64,
}

// SAFETY: law 8: everything shared in the mapping is atomic, or bytes that are only copied.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Server: makes the memory. It costs address space, and real pages only where something is written.
    pub fn create(geometry: Geometry) -> Result<Self, RegionError> {
        let layout = Layout::new(geometry)?;
        let file = rustix::fs::memfd_create("regent-wire", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|error| system("made", error))?;
        rustix::fs::ftruncate(&file, layout.total as u64).map_err(|error| system("given its size", error))?;
        // An engine that made it smaller would kill the server with SIGBUS.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|error| system("sealed", error))?;
        let region = Self { start: map(&file, layout.total)?, layout, file };
        region.header().write(&geometry);
        Ok(region)
    }

    /// Engine: opens the memory that the server passed as a file descriptor.
    pub fn open(file: OwnedFd) -> Result<Self, RegionError> {
        let actual = rustix::fs::fstat(&file).map_err(|error| system("examined", error))?.st_size as u64;
        let too_small = |expected| RegionError::Size { expected, actual };
        if actual < size_of::<Header>() as u64 {
            return Err(too_small(size_of::<Header>()));
        }
        let geometry = read_geometry(&file)?;
        let layout = Layout::new(geometry)?;
        if actual < layout.total as u64 {
            return Err(too_small(layout.total));
        }
        Ok(Self { start: map(&file, layout.total)?, layout, file })
    }

    /// The sizes that the memory was made with.
    pub fn geometry(&self) -> &Geometry {
        &self.layout.geometry
    }

    /// The file descriptor to pass to an engine.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Asks every thread to end when its FIFO is empty.
    pub fn drain(&self) {
        self.header().draining.store(1, Ordering::SeqCst);
        for thread in 0..self.layout.geometry.threads as usize {
            self.pool(0).wake(thread);
        }
    }

    /// Whether [`Region::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.header().draining.load(Ordering::SeqCst) != 0
    }

    /// Asks one thread to end before its next request.
    pub fn retire(&self, thread: usize) {
        self.thread(thread).retire.store(1, Ordering::SeqCst);
        self.pool(0).wake(thread);
    }

    /// After the death of one process of an engine that has several: what its threads had announced counts no more.
    /// Each table has to bury them too ([`crate::SlotTable::bury`]); the number may be used by another thread then.
    pub fn bury(&self, thread: usize) {
        for pool in 0..self.layout.geometry.pools as usize {
            self.pool(pool).bury(thread);
        }
        let control = self.thread(thread);
        control.state.store(ThreadState::Absent as u32, Ordering::Relaxed);
        control.tid.store(0, Ordering::Relaxed);
        control.retire.store(0, Ordering::SeqCst);
    }

    /// Sets how a pool's idle threads are chosen, how many may be on their way at once (at least 1), and how often a
    /// thread looks at an empty FIFO before it sleeps.
    pub fn tune(&self, pool: usize, scheduling: Scheduling, wake_limit: u32, spin: u32) {
        let control = self.pool(pool).control;
        let scheduling = match scheduling {
            Scheduling::Spread => 0,
            Scheduling::Pack => 1,
        };
        control.scheduling.store(scheduling, Ordering::Relaxed);
        control.wake_limit.store(wake_limit.max(1), Ordering::Relaxed);
        control.spin.store(spin, Ordering::Relaxed);
    }

    /// Keeps so many threads of a pool asleep, though requests may wait. It must be fewer than the pool has: of those that
    /// are awake, each comes back for the next request.
    pub fn keep_asleep(&self, pool: usize, threads: u32) {
        self.pool(pool).keep_asleep(threads);
    }

    /// Makes the number of a thread that has ended fit for another one.
    pub fn reuse(&self, thread: usize) {
        self.thread(thread).retire.store(0, Ordering::SeqCst);
    }

    /// Whether the thread was asked to end.
    pub fn is_retired(&self, thread: usize) -> bool {
        self.thread(thread).retire.load(Ordering::SeqCst) != 0
    }

    /// What a thread is doing. An engine can write anything here; what makes no sense reads as absent.
    pub fn thread_state(&self, thread: usize) -> ThreadState {
        ThreadState::from_bits(self.thread(thread).state.load(Ordering::Relaxed))
    }

    /// Whether the words of a thread are such as an engine may write.
    pub(crate) fn is_thread_possible(&self, thread: usize) -> bool {
        let control = self.thread(thread);
        control.state.load(Ordering::Relaxed) <= ThreadState::Backoff as u32
            && control.pool.load(Ordering::Relaxed) < self.layout.geometry.pools
    }

    /// A thread's figures, each as it is at this moment.
    pub fn thread_view(&self, thread: usize) -> ThreadView {
        let control = self.thread(thread);
        ThreadView {
            state: self.thread_state(thread),
            since: Duration::from_nanos(control.since.load(Ordering::Relaxed)),
            tid: control.tid.load(Ordering::Relaxed),
            token: Token::from_bits(control.token.load(Ordering::Relaxed)),
            requests: control.requests.load(Ordering::Relaxed),
            busy: Duration::from_nanos(control.busy.load(Ordering::Relaxed)),
            restarts: control.restarts.load(Ordering::Relaxed),
            memory: control.memory.load(Ordering::Relaxed),
        }
    }

    /// Whether a thread waits for a request, and does nothing else.
    pub fn asks(&self, thread: usize) -> bool {
        self.thread(thread).asks.load(Ordering::Relaxed) != 0
    }

    /// The last sign of life of a process ([`crate::control::Order::Beat`]).
    pub fn heartbeat(&self, process: usize) -> Heartbeat {
        let control = self.process(process);
        Heartbeat {
            tid: control.beat_tid.load(Ordering::Acquire),
            number: control.beat.load(Ordering::Acquire),
        }
    }

    /// In which thread a fault has ended a process, by the kernel's number; 0: nothing is known of that.
    pub fn fault_tid(&self, process: usize) -> u32 {
        self.process(process).fault_tid.load(Ordering::Acquire)
    }

    /// Makes the number of a process that has ended fit for another one.
    pub fn reuse_process(&self, process: usize) {
        let control = self.process(process);
        control.beat_tid.store(0, Ordering::Release);
        control.fault_tid.store(0, Ordering::Release);
        control.beat.store(0, Ordering::Release);
    }

    /// Threads of a pool that wait for work.
    pub fn idle(&self, pool: usize) -> usize {
        self.pool(pool).idle()
    }

    /// Requests that wait in a pool, withdrawn ones among them.
    pub fn waiting(&self, pool: usize) -> u64 {
        self.pool(pool).fifo().len()
    }

    /// Requests that the threads of a pool have taken out of its queue so far, withdrawn ones among them.
    pub fn taken(&self, pool: usize) -> u64 {
        self.pool(pool).control.head.load(Ordering::Relaxed)
    }

    /// When the request at the head of the pool's queue began to wait, by [`crate::clock::now`]. `None` if none waits.
    pub fn oldest(&self, pool: usize) -> Option<Duration> {
        let slots = self.layout.geometry.io_threads as usize * self.layout.geometry.slots_per_io as usize;
        let slot = Token::from_bits(self.pool(pool).fifo().peek()?).slot as usize;
        // An engine can write any token.
        (slot < slots).then(|| Duration::from_nanos(self.slot(slot).submitted.load(Ordering::Relaxed)))
    }

    pub(crate) fn header(&self) -> &Header {
        self.part(0)
    }

    pub(crate) fn process(&self, process: usize) -> &ProcessControl {
        &self.header().processes[process]
    }

    pub(crate) fn pool(&self, pool: usize) -> Pool<'_> {
        assert!(pool < self.layout.geometry.pools as usize, "no pool {pool}");
        Pool {
            control: self.part(self.layout.pools() + pool * size_of::<PoolControl>()),
            cells: self.parts(self.layout.cells(pool), fifo_capacity(&self.layout.geometry)),
            threads: self.parts(self.layout.threads(), self.layout.geometry.threads as usize),
        }
    }

    pub(crate) fn thread(&self, thread: usize) -> &ThreadControl {
        assert!(thread < self.layout.geometry.threads as usize, "no thread {thread}");
        self.part(self.layout.threads() + thread * size_of::<ThreadControl>())
    }

    pub(crate) fn doorbell(&self, io: usize) -> Doorbell<'_> {
        assert!(io < self.layout.geometry.io_threads as usize, "no I/O thread {io}");
        Doorbell {
            control: self.part(self.layout.ios() + io * size_of::<IoControl>()),
            dirty: self.parts(self.layout.dirty(io), self.layout.geometry.slots_per_io as usize / 64),
        }
    }

    /// `slot` counts over all I/O threads.
    pub(crate) fn slot(&self, slot: usize) -> &SlotControl {
        self.part(self.slot_offset(slot))
    }

    pub(crate) fn request_area(&self, slot: usize) -> Area<'_> {
        let offset = self.slot_offset(slot) + self.layout.request_ring();
        // SAFETY: law 8: the layout puts the ring within the mapping; capacities are powers of two (`check`).
        unsafe { Area::new(self.at(offset), self.layout.geometry.request_capacity as usize) }
    }

    pub(crate) fn response_area(&self, slot: usize) -> Area<'_> {
        let offset = self.slot_offset(slot) + self.layout.response_ring();
        // SAFETY: as above.
        unsafe { Area::new(self.at(offset), self.layout.geometry.response_capacity as usize) }
    }

    /// Server: writes the encoded head of a slot that is not queued. `false` if it is too long.
    pub(crate) fn write_head(&self, slot: usize, head: &[u8]) -> bool {
        if head.len() > self.layout.geometry.head_capacity as usize {
            return false;
        }
        let target = self.at(self.slot_offset(slot) + SLOT_HEAD);
        // SAFETY: law 8: the head area has `head_capacity` bytes.
        unsafe { target.copy_from_nonoverlapping(NonNull::from(head).cast(), head.len()) };
        self.slot(slot).head_len.store(head.len() as u32, Ordering::Relaxed);
        true
    }

    /// The encoded head of a slot, as long as the slot's request has it.
    pub(crate) fn head(&self, slot: usize, len: u32) -> &[u8] {
        let len = len.min(self.layout.geometry.head_capacity);
        // SAFETY: law 8: within the head area; nobody writes it between submission and release.
        unsafe {
            NonNull::slice_from_raw_parts(self.at(self.slot_offset(slot) + SLOT_HEAD), len as usize).as_ref()
        }
    }

    fn slot_offset(&self, slot: usize) -> usize {
        let slots = self.layout.geometry.io_threads as usize * self.layout.geometry.slots_per_io as usize;
        assert!(slot < slots, "no slot {slot}");
        self.layout.slot(slot)
    }

    fn part<T>(&self, offset: usize) -> &T {
        debug_assert!(offset + size_of::<T>() <= self.layout.total && offset.is_multiple_of(align_of::<T>()));
        // SAFETY: law 8: the layout puts a `T` of atomics here, aligned; any bytes are a valid value of it.
        unsafe { self.at(offset).cast().as_ref() }
    }

    fn parts<T>(&self, offset: usize, count: usize) -> &[T] {
        debug_assert!(
            offset + count * size_of::<T>() <= self.layout.total && offset.is_multiple_of(align_of::<T>())
        );
        // SAFETY: as in `part`.
        unsafe { NonNull::slice_from_raw_parts(self.at(offset).cast(), count).as_ref() }
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: law 8: every offset of the layout lies within the mapping.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: law 8: the mapping is ours, and no reference into it outlives the region.
        let result = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.layout.total) };
        debug_assert!(result.is_ok());
    }
}

impl Header {
    fn write(&self, g: &Geometry) {
        let fields = [
            (&self.io_threads, g.io_threads),
            (&self.slots_per_io, g.slots_per_io),
            (&self.pools, g.pools),
            (&self.threads, g.threads),
            (&self.head_capacity, g.head_capacity),
            (&self.request_capacity, g.request_capacity),
            (&self.response_capacity, g.response_capacity),
            (&self.frame_capacity, g.frame_capacity),
        ];
        for (field, value) in fields {
            field.store(value, Ordering::Relaxed);
        }
        self.magic.store(MAGIC, Ordering::Release);
    }
}

fn read_geometry(file: &OwnedFd) -> Result<Geometry, RegionError> {
    let start = map(file, size_of::<Header>())?;
    // SAFETY: law 8: a mapping of at least a page of any bytes is a valid `Header`.
    let header: &Header = unsafe { start.cast().as_ref() };
    let version = header.magic.load(Ordering::Acquire);
    let geometry = Geometry {
        io_threads: header.io_threads.load(Ordering::Relaxed),
        slots_per_io: header.slots_per_io.load(Ordering::Relaxed),
        pools: header.pools.load(Ordering::Relaxed),
        threads: header.threads.load(Ordering::Relaxed),
        head_capacity: header.head_capacity.load(Ordering::Relaxed),
        request_capacity: header.request_capacity.load(Ordering::Relaxed),
        response_capacity: header.response_capacity.load(Ordering::Relaxed),
        frame_capacity: header.frame_capacity.load(Ordering::Relaxed),
    };
    // SAFETY: law 8: made above, and `header` is not used any more.
    let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), size_of::<Header>()) };
    if version == MAGIC { Ok(geometry) } else { Err(RegionError::Version) }
}

fn map(file: &OwnedFd, size: usize) -> Result<NonNull<u8>, RegionError> {
    use rustix::mm::{MapFlags, ProtFlags};
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: law 8: a fresh mapping at an address that the kernel chooses.
    let start = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0)
    }
    .map_err(|error| system("mapped", error))?;
    Ok(NonNull::new(start.cast()).expect("invariant: mmap never returns NULL on success"))
}

fn system(step: &'static str, error: rustix::io::Errno) -> RegionError {
    RegionError::System { step, source: error.into() }
}
