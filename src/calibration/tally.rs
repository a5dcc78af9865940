//! Counts of a calibration's samples by place: every one is counted somewhere.

use super::slow_loop::SlowLoop;
use dataspace_proto::record::{CpuMode, Sample};
use dataspace_proto::register::Register;

/// The resume flag. It is set in the flags that an interrupt saves where the instruction at IP has
/// faulted and is run again, or is a repeated string instruction between two of its elements, and
/// clear where the instruction before IP has retired (Intel SDM volume 3, section 17.3.1.1).
const RESUME_FLAG: u64 = 1 << 16;

/// The samples of one loop.
#[derive(Clone, Debug)]
pub(crate) struct LoopTally {
    /// The loop.
    pub(crate) slow_loop: SlowLoop,
    /// By distance from the slow access.
    pub(crate) distances: Vec<u64>,
    /// At the slow access, which is to be run again: that is no skid.
    pub(crate) n_restarted: u64,
}

impl LoopTally {
    /// No samples yet.
    pub(crate) fn new(slow_loop: SlowLoop) -> Self {
        Self { distances: vec![0; slow_loop.len()], slow_loop, n_restarted: 0 }
    }

    /// All its samples.
    pub(crate) fn n_samples(&self) -> u64 {
        self.distances.iter().sum::<u64>() + self.n_restarted
    }
}

/// The samples of a calibration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// By loop.
    pub(crate) loops: Vec<LoopTally>,
    /// In user code outside the loops: what begins and ends them and looks at the clock.
    pub(crate) n_elsewhere: u64,
    /// In the kernel.
    pub(crate) n_in_kernel: u64,
}

impl Tally {
    /// No samples of these loops yet.
    pub(crate) fn new(loops: Vec<SlowLoop>) -> Self {
        Self { loops: loops.into_iter().map(LoopTally::new).collect(), ..Self::default() }
    }

    /// Counts a sample of the workload.
    pub(crate) fn count(&mut self, sample: &Sample) {
        if sample.mode == CpuMode::Kernel {
            self.n_in_kernel += 1;
            return;
        }
        let found = self.loops.iter_mut().find_map(|tally| {
            let distance = tally.slow_loop.distance(sample.ip)?;
            Some((tally, distance))
        });
        let Some((tally, distance)) = found else {
            self.n_elsewhere += 1;
            return;
        };
        let flags = sample.registers.get(Register::Rflags).unwrap_or(0);
        if distance == 0 && flags & RESUME_FLAG != 0 {
            tally.n_restarted += 1;
        } else {
            tally.distances[distance] += 1;
        }
    }

    /// All samples in the loops.
    pub(crate) fn n_in_loops(&self) -> u64 {
        self.loops.iter().map(LoopTally::n_samples).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::address::Avma;

    #[test]
    fn each_sample_is_counted_once() {
        let lines = ["store first 10 10 13 17", "store last 27 20 23 27"];
        let loops = lines.iter().filter_map(|line| SlowLoop::parse(line)).collect();
        let mut tally = Tally::new(loops);
        let mut count = |ip, mode, flags| {
            let mut sample = Sample { ip: Avma(ip), mode, ..Sample::default() };
            sample.registers.set(Register::Rflags, flags);
            tally.count(&sample);
        };
        count(0x13, CpuMode::User, 0x246);
        count(0x10, CpuMode::User, 0x246);
        count(0x10, CpuMode::User, 0x246 | RESUME_FLAG);
        count(0x20, CpuMode::User, 0x246 | RESUME_FLAG);
        count(0x11, CpuMode::User, 0x246);
        count(0x20, CpuMode::Kernel, 0x246);
        assert_eq!(
            (&tally.loops[0].distances[..], tally.loops[0].n_restarted),
            (&[1, 1, 0][..], 1)
        );
        assert_eq!(
            (&tally.loops[1].distances[..], tally.loops[1].n_restarted),
            (&[0, 1, 0][..], 0)
        );
        assert_eq!((tally.n_in_loops(), tally.n_elsewhere, tally.n_in_kernel), (4, 1, 1));
    }
}
