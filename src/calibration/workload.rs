//! The running program with the slow loops.

use super::slow_loop::SlowLoop;
use crate::bundled::{Bundled, Started};
use crate::exit::{Failure, Kind};
use anyhow::{Context as _, anyhow};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

const PROGRAM: Bundled = Bundled {
    name: "dataspace-calibration",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/calibration")),
    output: Stdio::piped,
    typed: "doctor --calibrate",
};

/// The program, which waits.
#[derive(Debug)]
pub(super) struct Workload {
    started: Started,
}

impl Workload {
    /// Starts the program and waits until it has made its memory ready; gives its loops.
    pub(super) fn start() -> anyhow::Result<(Self, Vec<SlowLoop>)> {
        let mut started = PROGRAM.start()?;
        let output = started.take_output().context("the calibration program has no output")?;
        let mut loops = Vec::new();
        for line in BufReader::new(output).lines() {
            let line = line.context("reading from the calibration program")?;
            match &*line {
                "ready" => return Ok((Self { started }, loops)),
                "no memory" => break,
                _ => {}
            }
            let slow_loop = SlowLoop::parse(&line);
            loops.push(slow_loop.ok_or_else(|| anyhow!("the calibration program says {line:?}"))?);
        }
        // Without memory it says so, or is killed while it fills what it was promised.
        Err(Failure::new(Kind::Unsupported, "calibration has not got the 256 MiB that it needs")
            .with_remedy("free some memory, or lift its limit: ulimit -v unlimited")
            .into())
    }

    /// Its process number.
    pub(super) fn pid(&self) -> anyhow::Result<i32> {
        self.started.pid()
    }

    /// Lets it run its loops.
    pub(super) fn run(&mut self) -> anyhow::Result<()> {
        let input = self.started.input().context("the calibration program has no input")?;
        input.write_all(b"go\n").context("starting the loops of the calibration program")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::slow_loop::{Access, SlowPlace};
    use dataspace_proto::address::Avma;
    use std::process::Command;

    /// Output of a tool of binutils for the program.
    fn binutils(tool: &str, args: &[&str]) -> String {
        let program = concat!(env!("OUT_DIR"), "/calibration");
        let output = Command::new(tool).args(args).arg(program).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn symbol(symbols: &str, name: &str) -> u64 {
        let line = symbols.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    }

    #[test]
    fn the_program_has_each_kind_of_access_in_each_place() {
        let (_workload, loops) = Workload::start().unwrap();
        let found: Vec<_> = loops.iter().map(|one| (one.access, one.place)).collect();
        let places = [SlowPlace::First, SlowPlace::Middle, SlowPlace::Last];
        let expect: Vec<_> =
            Access::ALL.iter().flat_map(|&access| places.map(|place| (access, place))).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn the_program_tells_every_instruction_of_its_loops() {
        let (_workload, loops) = Workload::start().unwrap();
        let symbols = binutils("nm", &[]);
        let code = binutils("objdump", &["-d", "--no-show-raw-insn"]);
        let disassembly: Vec<(u64, &str)> = code
            .lines()
            .filter_map(|line| line.trim_start().split_once(":\t"))
            .filter_map(|(ip, text)| Some((u64::from_str_radix(ip, 16).ok()?, text)))
            .collect();
        let first_loop = symbol(&symbols, "calibrate_dependent_first");
        let moved_by = loops[0].instructions[0].0 - first_loop;
        for slow_loop in &loops {
            let stated: Vec<u64> =
                slow_loop.instructions.iter().map(|ip| ip.0 - moved_by).collect();
            let start = disassembly.iter().position(|&(ip, _)| ip == stated[0]).unwrap();
            let listed = &disassembly[start..start + stated.len()];
            assert_eq!(listed.iter().map(|&(ip, _)| ip).collect::<Vec<_>>(), stated);
            let back = format!("{:x} <", stated[0]);
            let jump = listed.last().unwrap().1;
            assert!(jump.starts_with("jne") && jump.contains(&back), "{jump} leads to {back}");
            let kind = slow_loop.access.name().split(' ').next().unwrap();
            let name = format!("calibrate_{kind}_{}", slow_loop.place.name());
            let slow = Avma(symbol(&symbols, &name) + moved_by);
            assert_eq!(slow_loop.distance(slow), Some(0), "{name}");
        }
    }
}
